"""What a stream remembers besides its messages: publisher sequences and stored offsets.

Both are written into the log: with the next user chunk, as its trailer, or as a tracking chunk of their
own that takes one offset (docs/protocols/rabbitmq-stream.md, 7 "Tracking takes offsets"). An item is u8
type, u8 length of the reference, the reference, u64 value; a tracking chunk has one entry that holds all.
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
        self._pending: dict[tuple[int, str], int] = {}

    @property
    def pending(self) -> bool:
        """Whether something waits to be written."""
        return bool(self._pending)

    def put_sequence(self, reference: str, value: int) -> None:
        """Remember a publishing id; it goes into the trailer of the chunk that is being written."""
        self.sequences.pop(reference, None)
        self.sequences[reference] = value
        self._pending[SEQUENCE, reference] = value

    def put_offset(self, reference: str, value: int) -> None:
        """Store an offset; the last one counts, also when it is lower."""
        self.offsets[reference] = value
        self._pending[OFFSET, reference] = value

    def take(self) -> bytes:
        """The pending items as they stand in the log; nothing is pending afterwards."""
        items = b"".join([_item(*key, value) for key, value in self._pending.items()])
        self._pending.clear()
        return items

    def forget_pending(self) -> None:
        """Lose what was not written, as a crash does."""
        self._pending.clear()

    def snapshot(self, first_offset: int) -> bytes:
        """Everything, for the head of a new segment, after dropping what has become useless.

        Offsets below the first retained one go, and the oldest references above `MAX_SEQUENCES`.
        """
        self.offsets = {name: value for name, value in self.offsets.items() if value >= first_offset}
        for reference in list(self.sequences)[: max(len(self.sequences) - MAX_SEQUENCES, 0)]:
            del self.sequences[reference]
        self._pending.clear()
        items = [_item(SEQUENCE, name, value) for name, value in self.sequences.items()]
        return b"".join(items + [_item(OFFSET, name, value) for name, value in self.offsets.items()])


def _item(kind: int, reference: str, value: int) -> bytes:
    name = reference.encode(errors="surrogateescape")[:255]
    return pack(">BB", kind, len(name)) + name + pack(">Q", value)
