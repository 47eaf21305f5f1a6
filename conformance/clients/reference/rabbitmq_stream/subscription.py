"""A subscription without IO: positions, chunks, credit (docs/protocols/rabbitmq-stream.md, 7 and 8)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from struct import Struct, error
from typing import NamedTuple

from conformance.clients.reference.kit import ClientError, Feed
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from fakebrokers.rabbitmq_stream.batches import MAX_UNCOMPRESSED
from fakebrokers.rabbitmq_stream.chunk import MAGIC, Chunk, ChunkType
from fakebrokers.rabbitmq_stream.codes import Compression, OffsetType

Report = Callable[[ClientError], None]
Accepts = Callable[[bytes], bool]

_U32 = Struct(">I")
_BATCH = Struct(">BHII")
_GZIP = 31  #: window bits: a gzip header, largest window


#: What the value of an offset type may be (docs/protocols/rabbitmq-stream.md, 8).
RANGES: dict[int, range] = {
    OffsetType.OFFSET: range(1 << 64),
    OffsetType.TIMESTAMP: range(-(1 << 63), 1 << 63),
}


class Start(NamedTuple):
    """Where to begin: the offset type, and its value for types 4 (offset) and 5 (milliseconds since 1970)."""

    type: int
    value: int | None = None

    def check(self) -> None:
        """Raise `ClientError` (invalid) where the value has no place on the wire."""
        allowed = RANGES.get(self.type)
        if self.value is not None and allowed is not None and self.value not in allowed:
            raise ClientError("invalid", f"a position of {self.value} does not fit into 8 bytes")


class Message(NamedTuple):
    """What the application gets.

    Attributes:
        offset: Its position in the stream.
        timestamp_ms: When its chunk was written, milliseconds since the Unix epoch.
    """

    offset: int
    body: bytes
    timestamp_ms: int


class Track:
    """Which offset of a consumer with a name has to be stored.

    Attributes:
        handled: The offset of the last message that the application is through with.
        stored: What was stored last.
    """

    def __init__(self, name: str, every: int) -> None:
        self.name = name
        self.every = every
        self.handled: int | None = None
        self.stored: int | None = None
        self._count = 0

    def count(self, offset: int) -> bool:
        """One more was handled; whether it is time to store its offset."""
        self.handled = offset
        self._count += 1
        return self._count % self.every == 0


class Arrival(NamedTuple):
    """A chunk that has come, and for which life of the subscription."""

    chunk: Chunk
    generation: int


class Subscription:
    """One subscription, over all connections that it had.

    Attributes:
        start: What the user asked for.
        credit: Chunks that may be under way.
        connection: Where it lives now, or None.
        subscription_id: Its id there.
        next_offset: After the last message that the application got; None if it got none.
        feed: Chunks that wait for the application; set before the first one comes.
        owed: Chunks that have come and for which no credit was given back yet.
        track: Where the library stores its offsets by itself.
        accepts: Which bodies the application wants; the server sends whole chunks, whatever its filter is.
        generation: Changes when what has arrived must not be delivered any more.
    """

    feed: Feed[Arrival]

    def __init__(self, stream: str, start: Start, credit: int, properties: dict[str, str]) -> None:
        self.stream = stream
        self.start = start
        self.credit = credit
        self.properties = properties
        self.connection: Connection | None = None
        self.subscription_id = 0
        self.next_offset: int | None = None
        self.owed = 0
        self.generation = 0
        self.track: Track | None = None
        self.accepts: Accepts = lambda body: True
        self.is_closed = False

    # where it lives

    def position(self) -> Start:
        """What to ask the server for: where the application is, or what the user wanted."""
        if self.next_offset is None:
            return self.start
        return Start(OffsetType.OFFSET, self.next_offset)

    def attach(self, connection: Connection, subscription_id: int) -> None:
        """The server has accepted it."""
        self.owed = 0
        self.connection = connection
        self.subscription_id = subscription_id
        connection.subscriptions[subscription_id] = self

    def detach(self) -> None:
        """Its connection is gone, the server has dropped it, or the user is done."""
        connection, self.connection = self.connection, None
        if connection is not None and connection.subscriptions.get(self.subscription_id) is self:
            del connection.subscriptions[self.subscription_id]

    def renew(self) -> None:
        """What has arrived and was not delivered will come again, or is another's."""
        self.generation += 1
        self.feed.clear()

    def activate(self, is_active: bool) -> tuple[int, int | None]:
        """Single active consumer: the offset specification to answer with."""
        self.renew()
        return self.position() if is_active else (OffsetType.NONE, None)

    def repay(self) -> None:
        """Give back the credit of the chunks that were dropped when it became inactive."""
        if self.connection is not None and self.owed:
            self.connection.give_credit(self.subscription_id, self.owed)
            self.owed = 0

    # chunks

    def deliver(self, chunk: Chunk) -> None:
        """A chunk came. After the end nothing more is taken in: the server may not know of it yet."""
        if self.is_closed:
            return
        self.owed += 1
        self.feed.put(Arrival(chunk, self.generation))

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        """What the application gets of a chunk; what cannot be read is reported instead."""
        if chunk.magic != MAGIC:
            report(ClientError("protocol", f"a chunk begins with 0x{chunk.magic:02x}"))
            return []
        if chunk.chunk_type != ChunkType.USER:
            report(ClientError("protocol", f"a chunk of type {chunk.chunk_type} holds no messages"))
            return []
        try:
            self.check(chunk)
            records = list(self.records(chunk, report))
        except ClientError as problem:
            report(problem)
            return []
        wanted = [(at, body) for at, body in records if self.is_wanted(at) and self.accepts(body)]
        return [Message(at, body, chunk.timestamp_ms) for at, body in wanted]

    def check(self, chunk: Chunk) -> None:
        """Raise `ClientError` if the data are not what was stored."""
        if not chunk.length_ok:
            raise ClientError("protocol", f"chunk {chunk.first_offset}: the data length does not match")
        if not chunk.crc_ok:
            raise ClientError("protocol", f"chunk {chunk.first_offset}: the CRC does not match")

    def is_wanted(self, offset: int) -> bool:
        """Chunks may begin before the offset that was asked for."""
        start, value = self.position()
        return start != OffsetType.OFFSET or value is None or offset >= value

    def records(self, chunk: Chunk, report: Report) -> Iterator[tuple[int, bytes]]:
        """Offset and body of each record; raises `ClientError` where the entries run over their end."""
        data, at, offset = chunk.data, 0, chunk.first_offset
        try:
            while at < len(data):
                if data[at] & 0x80:
                    kind, count, plain_size, size = _BATCH.unpack_from(data, at)
                    at += _BATCH.size
                    if offset + count > chunk.next_offset:
                        # its offsets would be those of the chunks after, which would seem to be known then
                        text = f"chunk {chunk.first_offset}: a batch holds more than the chunk"
                        raise ClientError("protocol", text)
                    bodies = self.open_batch(kind >> 4 & 7, count, plain_size, _cut(data, at, size), report)
                else:
                    (size,) = _U32.unpack_from(data, at)
                    at += _U32.size
                    count, bodies = 1, [_cut(data, at, size)]
                yield from enumerate(bodies, offset)
                at += size
                offset += count
        except (error, ValueError):
            text = f"chunk {chunk.first_offset}: an entry runs over the end of the data"
            raise ClientError("protocol", text) from None

    def open_batch(
        self, compression: int, count: int, plain_size: int, data: bytes, report: Report
    ) -> list[bytes]:
        """The bodies in a sub-entry batch; nothing of it if it cannot be opened."""
        try:
            bodies = list(_bodies(self.decompress(compression, plain_size, data)))
        except (error, ValueError, zlib.error) as problem:
            report(ClientError("protocol", f"a batch of {count} records cannot be opened: {problem}"))
            return []
        if len(bodies) != count:
            report(ClientError("protocol", f"a batch of {count} records holds {len(bodies)}"))
            return []
        return bodies

    def decompress(self, compression: int, plain_size: int, data: bytes) -> bytes:
        """The plain data of a batch; raises ValueError or zlib.error."""
        if compression == Compression.NONE:
            return data
        if compression != Compression.GZIP:
            raise ValueError(f"compression {compression} is not known here")
        if plain_size > MAX_UNCOMPRESSED:
            raise ValueError(f"{plain_size} bytes are too many")
        unpacking = zlib.decompressobj(_GZIP)
        plain = unpacking.decompress(data, plain_size + 1)
        if len(plain) != plain_size or not unpacking.eof:
            raise ValueError("the data do not have the size that the header says")
        return plain

    # what the application has done

    def delivered(self, message: Message) -> None:
        """The application gets this message now."""
        self.next_offset = message.offset + 1

    def processed(self, chunk: Chunk) -> None:
        """The application is through with a chunk: let the next one come, unless it wants no more."""
        if chunk.magic == MAGIC:
            asked = self.position()
            floor = asked.value or 0 if asked.type == OffsetType.OFFSET else 0
            self.next_offset = max(floor, self.next_position(chunk))
        if self.connection is not None:
            self.owed -= 1
            if not self.is_closed:
                self.connection.give_credit(self.subscription_id)

    def next_position(self, chunk: Chunk) -> int:
        """The offset after a chunk: it counts records, not entries."""
        return chunk.next_offset


def _cut(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise ValueError("too short")
    return data[at : at + size]


def _bodies(plain: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(plain):
        (size,) = _U32.unpack_from(plain, at)
        yield _cut(plain, at + _U32.size, size)
        at += _U32.size + size
