"""What a stream remembers besides its messages: publisher sequences and stored offsets.

Both are written into the log: with the next user chunk, as its trailer, or as a tracking chunk of their
own that takes one offset (docs/protocols/rabbitmq-stream.md, 7 "Tracking takes offsets"). An item is u8
type, u8 length of the reference, the reference, u64 value; a sequence in a snapshot has the u64 id of its
chunk in front of the value. A tracking chunk has one entry that holds all.
"""

from __future__ import annotations

from struct import pack

SEQUENCE, OFFSET = 0, 1

#: publisher references that survive a segment roll
MAX_SEQUENCES = 255


class Tracking:
    """The tracking state of one stream.

    Attributes:
        sequences: By publisher reference, least recently written first: the highest publishing id.
        offsets: By consumer reference: the stored offset.
    """

    def __init__(self) -> None:
        self.sequences: dict[str, int] = {}
        self.offsets: dict[str, int] = {}
        self._written_at: dict[str, int] = {}
        self._pending: dict[tuple[int, str], int] = {}

    @property
    def pending(self) -> bool:
        """Whether something waits to be written."""
        return bool(self._pending)

    def put_sequence(self, reference: str, value: int, chunk_id: int = 0) -> None:
        """Remember a publishing id; it goes into the trailer of the chunk that is being written.

        Args:
            reference: Of the publisher.
            value: The publishing id.
            chunk_id: The stream's next offset when the message came.
        """
        self.sequences.pop(reference, None)
        self.sequences[reference] = value
        self._written_at[reference] = chunk_id
        self._pending[SEQUENCE, reference] = value

    def put_offset(self, reference: str, value: int) -> None:
        """Store an offset; the last one counts, also when it is lower."""
        self.offsets[reference] = value
        self._pending[OFFSET, reference] = value

    def take(self) -> bytes:
        """The pending items as they stand in the log; nothing is pending afterwards."""
        if not self._pending:
            return b""
        pending = sorted(self._pending.items(), key=lambda item: _place(item[0][1]), reverse=True)
        self._pending.clear()
        items = [
            _item(*key, value) for kind in (SEQUENCE, OFFSET) for key, value in pending if key[0] == kind
        ]
        return b"".join(items)

    def forget_pending(self) -> None:
        """Lose what was not written, as a crash does."""
        self._pending.clear()

    @property
    def is_empty(self) -> bool:
        """Nothing is remembered."""
        return not self.sequences and not self.offsets

    def snapshot(self, first_offset: int) -> bytes:
        """Everything, for the head of a new segment, after dropping what has become useless.

        Offsets below the first retained one go, and the oldest references above `MAX_SEQUENCES`. What was
        pending is in it, and pending no more.
        """
        self.offsets = {name: value for name, value in self.offsets.items() if value >= first_offset}
        for reference in list(self.sequences)[: max(len(self.sequences) - MAX_SEQUENCES, 0)]:
            del self.sequences[reference]
            self._written_at.pop(reference, None)
        self._pending.clear()
        offsets = sorted(self.offsets.items(), key=lambda item: _place(item[0]), reverse=True)
        sequences = sorted(self.sequences.items(), key=lambda item: _place(item[0]), reverse=True)
        return b"".join(
            [_item(OFFSET, name, value) for name, value in offsets]
            + [_item(SEQUENCE, name, self._written_at.get(name, 0), value) for name, value in sequences]
        )


def _place(reference: str) -> bytes:
    """Items are written in the reverse order of these."""
    return reference.encode(errors="surrogateescape")


def _item(kind: int, reference: str, *values: int) -> bytes:
    name = _place(reference)[:255]
    return pack(">BB", kind, len(name)) + name + pack(f">{len(values)}Q", *values)
