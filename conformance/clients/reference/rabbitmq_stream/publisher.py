"""A publisher without IO: publishing ids, frames, confirms (docs/protocols/rabbitmq-stream.md, 6)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec import UNSET

from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.requests import refused
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.codes import Compression
from fakebrokers.rabbitmq_stream.entries import simple_entries
from fakebrokers.rabbitmq_stream.frames import Publish

HEAD = 9  #: bytes of a Publish in front of its first message
PER_ENTRY = 8  #: bytes of a publishing id
IDS = (1 << 64) - 1

FilterValue = str | None | msgspec.UnsetType


def filter_size(value: FilterValue) -> int:
    """Bytes of a filter value in a Publish frame: none in version 1."""
    return 0 if value is UNSET else 2 + len((value or "").encode())


class Entry(msgspec.Struct):
    """A message, or a sub-entry batch of several, on its way.

    Attributes:
        data: As it is in the frame, after the publishing id.
        records: Messages in it.
        done: Called once: None for confirmed, or the `ClientError`.
        deadline: When its outcome counts as unknown.
        publishing_id: Given by the user, or when it is sent.
        is_sent: Whether it has been on the wire.
        filter_value: None: it has none, though it is sent with one; unset: it is sent without.
    """

    data: bytes
    records: int
    done: Callable[[ClientError | None], None]
    deadline: float
    publishing_id: int | None = None
    is_sent: bool = False
    filter_value: FilterValue = UNSET

    @property
    def size(self) -> int:
        """Bytes in a Publish frame."""
        return PER_ENTRY + filter_size(self.filter_value) + len(self.data)


class Publisher:
    """One declared publisher, over all connections that it had.

    Attributes:
        name: The reference for deduplication, or None.
        connection: Where it is declared now, or None.
        publisher_id: Its id there.
        next_id: The next publishing id.
        pending: Entries without an outcome, by publishing id, in the order of sending.
        unconfirmed_bytes: Their size.
    """

    def __init__(self, stream: str, name: str | None, settings: Settings) -> None:
        self.stream = stream
        self.name = name
        self.settings = settings
        self.connection: Connection | None = None
        self.publisher_id = 0
        self.next_id = 1
        self.pending: dict[int, Entry] = {}
        self.unconfirmed_bytes = 0
        self.is_closed = False
        self._deadlines: list[tuple[float, int]] = []

    # where it lives

    def attach(self, connection: Connection, publisher_id: int, sequence: int | None) -> None:
        """It was declared; `sequence` is the highest id that the server has of its reference."""
        self.connection = connection
        self.publisher_id = publisher_id
        connection.publishers[publisher_id] = self
        if sequence is not None:
            self.next_id = max(self.next_id, sequence + 1)
        self.write(list(self.pending.values()))

    def detach(self, error: ClientError) -> None:
        """Its connection is gone, or the server has dropped it."""
        connection, self.connection = self.connection, None
        if connection is not None and connection.publishers.get(self.publisher_id) is self:
            del connection.publishers[self.publisher_id]
        if not self.is_repeatable():
            self.end_all(error)

    def is_repeatable(self) -> bool:
        """Whether what has no confirm is published again: only where the server can tell doubles."""
        return self.name is not None and self.settings.auto_reconnect and not self.is_closed

    # sending

    def entry(self, bodies: Sequence[bytes], compression: Compression | None) -> bytes:
        """The bytes of one message, or of a sub-entry batch."""
        return simple_entries(bodies) if compression is None else batch_entry(bodies, compression)

    def check_size(self, size: int) -> None:
        """Raise `ClientError` (invalid) if an entry of `size` bytes is too large for a frame."""
        frame_max = self.frame_max()
        if frame_max and HEAD + size > frame_max:
            raise ClientError("invalid", f"{HEAD + size} bytes do not fit into a frame of {frame_max}")

    def frame_max(self) -> int:
        """What was agreed with the server; 0: no limit."""
        return self.connection.frame_max if self.connection is not None else self.settings.frame_max

    def has_room(self) -> bool:
        """Whether more may be sent before confirms come."""
        is_few = len(self.pending) < self.settings.unconfirmed_max
        return is_few and self.unconfirmed_bytes < self.settings.unconfirmed_bytes

    def send(self, entries: Sequence[Entry]) -> None:
        """Publish; it has to be attached."""
        for entry in entries:
            if entry.publishing_id is None:
                entry.publishing_id = self.take_id()
            else:
                self.next_id = max(self.next_id, entry.publishing_id + 1)
            self.remember(entry.publishing_id, entry)
        self.write(entries)

    def take_id(self) -> int:
        """The next publishing id: increasing, never twice. Raises `ClientError` (invalid): there is none."""
        if self.next_id > IDS:
            raise ClientError("invalid", "this publisher has used all publishing ids")
        taken, self.next_id = self.next_id, (self.next_id + 1) & IDS
        return taken

    def remember(self, publishing_id: int, entry: Entry) -> None:
        """From now on its outcome is awaited."""
        self.pending[publishing_id] = entry
        self.unconfirmed_bytes += entry.size
        heapq.heappush(self._deadlines, (entry.deadline, publishing_id))

    def write(self, entries: Sequence[Entry]) -> None:
        """Put entries on the wire, in as many frames as the agreed maximum asks for."""
        assert self.connection is not None
        for group in self.groups(entries):
            self.connection.send(self.frame(group))
            for entry in group:
                entry.is_sent = True

    def groups(self, entries: Iterable[Entry]) -> Iterator[list[Entry]]:
        """The entries of each frame."""
        limit = self.frame_max()
        group: list[Entry] = []
        size = HEAD
        for entry in entries:
            is_other_version = group and (group[0].filter_value is UNSET) != (entry.filter_value is UNSET)
            if is_other_version or (group and limit and size + entry.size > limit):
                yield group
                group, size = [], HEAD
            group.append(entry)
            size += entry.size
        if group:
            yield group

    def frame(self, entries: Sequence[Entry]) -> Publish:
        """One Publish frame: of version 2 where the entries may have filter values."""
        values = [entry.filter_value or None for entry in entries if entry.filter_value is not UNSET]
        return Publish(
            publisher_id=self.publisher_id,
            count=len(entries),
            publishing_ids=pack_ids([entry.publishing_id or 0 for entry in entries]),
            entries=b"".join([entry.data for entry in entries]),
            records=sum([entry.records for entry in entries]),
            filter_values=tuple(values),
            version=2 if values else 1,
        )

    # outcomes

    def confirmed(self, ids: Sequence[int]) -> None:
        """The server has stored these; ids that are not open are ignored."""
        for publishing_id in ids:
            self.settle(publishing_id, None)

    def refused(self, errors: Sequence[tuple[int, int]]) -> None:
        """The server has not stored these: pairs of publishing id and code."""
        for publishing_id, code in errors:
            self.settle(publishing_id, refused("publish", code))

    def settle(self, publishing_id: int, error: ClientError | None) -> None:
        """One outcome."""
        entry = self.pending.pop(publishing_id, None)
        if entry is not None:
            self.unconfirmed_bytes -= entry.size
            entry.done(error)
        elif self.connection is not None:
            word = "confirm" if error is None else "refusal"
            self.connection.owner.dropped(f"a {word} of message {publishing_id}, which waits for none,")

    def forget(self, publishing_id: int) -> None:
        """Nobody wants to know this outcome any more."""
        entry = self.pending.pop(publishing_id, None)
        if entry is not None:
            self.unconfirmed_bytes -= entry.size

    def end_all(self, error: ClientError) -> None:
        """No outcome will come: all that is open is unknown, which is never a refusal."""
        unknown = ClientError(error.kind, error.text, code=error.code, definite=False)
        if unknown.kind == "refused":
            unknown.kind = "closed"
        for publishing_id in list(self.pending):
            self.settle(publishing_id, unknown)

    def next_deadline(self) -> float | None:
        """When `expire` has something to do."""
        while self._deadlines and self._deadlines[0][1] not in self.pending:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def expire(self, now: float) -> None:
        """Give up what has waited for too long; its outcome is unknown."""
        while self._deadlines and self._deadlines[0][0] <= now:
            _, publishing_id = heapq.heappop(self._deadlines)
            entry = self.pending.get(publishing_id)
            if entry is not None and entry.deadline <= now:
                self.settle(publishing_id, ClientError("timeout", "no confirm"))
