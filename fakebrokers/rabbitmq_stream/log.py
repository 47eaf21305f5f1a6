"""One append-only log: chunks in segments, found by offset or time (docs/protocols/rabbitmq-stream.md, 7).

A chunk is kept as its bytes on the wire, header and data apart, and turned into a `Chunk` when it is read: so
a million small messages cost little more than their bytes, and the data of a large chunk is never copied.

A segment is a file in a real broker, and its size counts what is in the file: a header, and for each chunk
the bloom filter and the trailer besides what consumers are sent.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from struct import Struct

from fakebrokers.rabbitmq_stream.arguments import DEFAULT_SEGMENT_SIZE
from fakebrokers.rabbitmq_stream.chunk import Chunk, ChunkType
from fakebrokers.rabbitmq_stream.filters import ChunkFilter

#: bytes in front of the chunks of a segment
SEGMENT_HEADER = 8
#: chunks after which a segment is full, whatever its size
MAX_SEGMENT_CHUNKS = 256_000

_TIMESTAMP = Struct(">q")
_U32 = Struct(">I")

#: where things are in a chunk's header
_TYPE_AT, _RECORDS_AT, _TIMESTAMP_AT, _TRAILER_AT, _BLOOM_AT = 1, 4, 8, 40, 44


def _timestamp(header: bytes) -> int:
    return int(_TIMESTAMP.unpack_from(header, _TIMESTAMP_AT)[0])


def _stored(header: bytes, data: bytes) -> int:
    """Bytes of a chunk in a segment file."""
    return len(header) + len(data) + int(_U32.unpack_from(header, _TRAILER_AT)[0]) + header[_BLOOM_AT]


def _messages(header: bytes) -> int:
    return int(_U32.unpack_from(header, _RECORDS_AT)[0]) if header[_TYPE_AT] == ChunkType.USER else 0


class Log:
    """The chunks of one stream.

    Attributes:
        next_offset: What the next record gets.
        segment_size: Bytes after which a new segment is begun.
        size: Bytes of all retained chunks, without filters and trailers.
        messages: How many messages are retained.
        segments_begun: How many times a segment was closed and a new one begun.
    """

    def __init__(self, segment_size: int = DEFAULT_SEGMENT_SIZE) -> None:
        self.segment_size = segment_size
        self.next_offset = 0
        self.size = 0
        self.messages = 0
        self.segments_begun = 0
        self._ids = array("Q")
        self._headers: list[bytes] = []
        self._data: list[bytes] = []
        self._segments = [0]  # chunk id with which each segment begins
        self._segment_bytes = [SEGMENT_HEADER]
        self._segment_chunks = 0  # in the newest one
        self._filters: dict[int, ChunkFilter] = {}
        self._trailers: dict[int, bytes] = {}
        self._last_user: int | None = None
        self._in_time_order = True

    def __len__(self) -> int:
        return len(self._headers)

    @property
    def first_offset(self) -> int | None:
        """Offset of the oldest retained record."""
        return self._ids[0] if self._ids else None

    @property
    def last_chunk_id(self) -> int | None:
        """Id of the newest chunk of any type."""
        return self._ids[-1] if self._ids else None

    @property
    def last_user_chunk_id(self) -> int | None:
        """Id of the newest chunk that holds messages."""
        return self._last_user

    @property
    def segments(self) -> int:
        """How many segments are retained; one at least."""
        return len(self._segments)

    @property
    def segment_is_full(self) -> bool:
        """The next chunk belongs into a new segment."""
        return self._segment_bytes[-1] >= self.segment_size or self._segment_chunks >= MAX_SEGMENT_CHUNKS

    def append(self, chunk: Chunk, values: ChunkFilter | None = None, trailer: bytes = b"") -> None:
        """Write a chunk, whose id has to be `next_offset`, with the filter values in it."""
        header = chunk.header()
        if self._headers and chunk.timestamp_ms < _timestamp(self._headers[-1]):
            self._in_time_order = False
        if values is not None:
            self._filters[chunk.first_offset] = values
        if trailer:
            self._trailers[chunk.first_offset] = trailer
        self._ids.append(chunk.first_offset)
        self._headers.append(header)
        self._data.append(chunk.data)
        self.next_offset = chunk.next_offset
        self.size += len(header) + len(chunk.data)
        self._segment_bytes[-1] += _stored(header, chunk.data)
        self._segment_chunks += 1
        if chunk.chunk_type == ChunkType.USER:
            self.messages += chunk.records
            self._last_user = chunk.first_offset

    def begin_segment(self) -> None:
        """Close the newest segment; empty ones are never left behind."""
        if self._segment_chunks:
            self._segments.append(self.next_offset)
            self._segment_bytes.append(SEGMENT_HEADER)
            self._segment_chunks = 0
            self.segments_begun += 1

    def segment_of(self, offset: int) -> int:
        """Id of the chunk with which the segment begins that contains `offset`."""
        return self._segments[max(bisect_right(self._segments, offset) - 1, 0)]

    def locate(self, offset: int) -> int:
        """Id of the chunk that contains `offset`; below all: of the first; above all: `next_offset`."""
        if offset >= self.next_offset or not self._ids:
            return self.next_offset
        return self._ids[max(bisect_right(self._ids, offset) - 1, 0)]

    def locate_time(self, timestamp_ms: int) -> int:
        """Id of the first chunk of any type that is at least as young; `next_offset` if there is none."""
        if self._in_time_order:
            index = bisect_left(self._headers, timestamp_ms, key=_timestamp)
        else:  # the clock went back once: read them all, like a real log does
            ages = (i for i, header in enumerate(self._headers) if _timestamp(header) >= timestamp_ms)
            index = next(ages, len(self._headers))
        return self._ids[index] if index < len(self._ids) else self.next_offset

    def read(self, chunk_id: int) -> Chunk:
        """The chunk of that id; there has to be one (see `next_id`)."""
        index = bisect_left(self._ids, chunk_id)
        return Chunk.join(self._headers[index], self._data[index])

    def next_id(self, at_least: int) -> int | None:
        """Id of the first chunk at or after an offset."""
        index = bisect_left(self._ids, at_least)
        return self._ids[index] if index < len(self._ids) else None

    def is_user(self, chunk_id: int) -> bool:
        """Whether the chunk of that id holds messages, not tracking data."""
        return self._headers[bisect_left(self._ids, chunk_id)][_TYPE_AT] == ChunkType.USER

    def filter_of(self, chunk_id: int) -> ChunkFilter | None:
        """The filter values in the chunk of that id; None: all its messages have none."""
        return self._filters.get(chunk_id)

    def trailer_of(self, chunk_id: int) -> bytes:
        """What stands after the data of the chunk of that id."""
        return self._trailers.get(chunk_id, b"")

    def __iter__(self) -> Iterator[Chunk]:
        """All retained chunks, oldest first."""
        return map(Chunk.join, list(self._headers), list(self._data))

    def retain(self, max_bytes: int | None, oldest_ms: int | None) -> list[Log]:
        """Drop the oldest whole segments, never the newest one.

        Args:
            max_bytes: Drop while all segments together are larger; None: any size.
            oldest_ms: Drop segments whose newest chunk is older than this; None: any age.

        Returns:
            The dropped segments, oldest first, each as a log of its own: readers in it may go on.
        """
        dropped = []
        while len(self._segments) > 1:
            end = bisect_left(self._ids, self._segments[1])
            too_old = oldest_ms is not None and _timestamp(self._headers[end - 1]) < oldest_ms
            if not too_old and (max_bytes is None or sum(self._segment_bytes) <= max_bytes):
                break
            dropped.append(self._copy_front(end))
            self._drop_front(end)
        return dropped

    def truncate(self, offset: int) -> None:
        """Drop all chunks in front of the one that contains `offset`, whatever segment they are in."""
        self._drop_front(bisect_left(self._ids, self.locate(offset)))

    def _copy_front(self, count: int) -> Log:
        front = Log(self.segment_size)
        front._segments = self._segments[:1]
        front._ids = self._ids[:count]
        front._headers, front._data = self._headers[:count], self._data[:count]
        front._filters = {number: self._filters[number] for number in front._ids if number in self._filters}
        front._trailers = {
            number: self._trailers[number] for number in front._ids if number in self._trailers
        }
        return front

    def _drop_front(self, count: int) -> None:
        for header, data in zip(self._headers[:count], self._data, strict=False):
            self.size -= len(header) + len(data)
            self.messages -= _messages(header)
            self._segment_bytes[0] -= _stored(header, data)
            if len(self._segments) > 1 and self._segment_bytes[0] <= SEGMENT_HEADER:
                del self._segments[0], self._segment_bytes[0]
        for chunk_id in self._ids[:count]:
            self._filters.pop(chunk_id, None)
            self._trailers.pop(chunk_id, None)
        del self._ids[:count], self._headers[:count], self._data[:count]
        if self._last_user is not None and (not self._ids or self._ids[0] > self._last_user):
            self._last_user = None
