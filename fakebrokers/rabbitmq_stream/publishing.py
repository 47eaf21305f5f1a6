"""Publish frames, read and written by hand because they are most of the load.

Layout: docs/protocols/rabbitmq-stream.md, 3 and 6.

On the wire publishing ids, filter values and entries alternate; a `Publish` holds them apart, so that
the entries can go into a chunk and the ids into a confirm as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from struct import Struct, error, iter_unpack

from fakebrokers.rabbitmq_stream.binary import NULL_STRING, Reader, pack_ids, pack_string
from fakebrokers.rabbitmq_stream.entries import simple_entries
from fakebrokers.rabbitmq_stream.frames_publishing import Publish
from fakebrokers.rabbitmq_stream.wiretypes import Crash

_HEAD = Struct(">HHBI")
#: a Publish of one simple entry, up to its body
_ONE = Struct(">4xBI8sI")
_U16 = Struct(">H")
_U32 = Struct(">I")

_BATCH_BIT = 0x80000000
_BATCH_HEADER = 11
#: bytes of an id and of an empty simple entry
_LEAST = 12


class DamagedEntries(Crash):
    """An entry runs past the frame. The server crashes, after it has stored the entries in front of it.

    Attributes:
        whole: The frame with those entries only.
    """

    def __init__(self, whole: Publish, short: str, at: int) -> None:
        super().__init__("a whole entry", short, at)
        self.whole = whole


def publish(
    publisher_id: int, messages: Iterable[tuple[int, bytes]], filter_values: Sequence[str | None] = ()
) -> Publish:
    """A Publish of simple entries from pairs of publishing id and body; version 2 with filter values."""
    pairs = list(messages)
    return Publish(
        publisher_id=publisher_id,
        count=len(pairs),
        publishing_ids=pack_ids([publishing_id for publishing_id, _ in pairs]),
        entries=simple_entries([body for _, body in pairs]),
        records=len(pairs),
        filter_values=tuple(filter_values),
        version=2 if filter_values else 1,
    )


def read_publish_v1(body: bytes) -> Publish:
    """A Publish without filter values.

    Raises:
        WireError: The fixed part is incomplete: the server calls the frame unknown.
        DamagedEntries: An entry runs past the frame.
    """
    pos, end = _HEAD.size, len(body)
    if end >= _ONE.size:
        publisher_id, claimed, packed_id, size = _ONE.unpack_from(body)
        if size == end - _ONE.size:  # one simple entry, as most applications send
            return Publish(
                publisher_id, 1, packed_id, body[pos + 8 :], 1, (), 1, 0, None if claimed == 1 else claimed
            )
    publisher_id, claimed = _read_head(body)
    if (alike := _split_alike(body)) is not None:
        count, packed_ids, packed_entries = alike
        own_claim = None if claimed == count else claimed
        return Publish(publisher_id, count, packed_ids, packed_entries, count, (), 1, 0, own_claim)
    ids: list[bytes] = []
    entries: list[bytes] = []
    batches = inner_records = 0
    unpack_size = _U32.unpack_from
    try:
        while pos < end:
            start = pos + 8
            ids.append(body[pos:start])
            (size,) = unpack_size(body, start)
            if size < _BATCH_BIT:
                pos = start + 4 + size
            else:
                batches += 1
                inner_records += _U16.unpack_from(body, start + 1)[0]
                pos = start + _BATCH_HEADER + unpack_size(body, start + 7)[0]
            entries.append(body[start:pos])
    except error:
        raise DamagedEntries(read_publish_v1(body[:pos]), f"{end - pos} bytes", pos) from None
    if pos > end:
        begin = end - len(entries[-1]) - 8
        raise DamagedEntries(read_publish_v1(body[:begin]), f"{pos - end} bytes too few", end)
    count = len(ids)
    return Publish(
        publisher_id=publisher_id,
        count=count,
        publishing_ids=b"".join(ids),
        entries=b"".join(entries),
        records=count - batches + inner_records,
        batches=batches,
        claimed=None if claimed == count else claimed,
    )


def read_publish_v2(body: bytes) -> Publish:
    """A Publish with a filter value in front of each entry; batches are not allowed here.

    Raises:
        WireError, DamagedEntries: See `read_publish_v1`.
    """
    publisher_id, claimed = _read_head(body)
    pos, end = _HEAD.size, len(body)
    ids: list[bytes] = []
    values: list[str | None] = []
    entries: list[bytes] = []
    unpack_length, unpack_size = _U16.unpack_from, _U32.unpack_from
    try:
        while pos < end:
            ids.append(body[pos : pos + 8])
            (length,) = unpack_length(body, pos + 8)
            start = pos + 10
            if length == NULL_STRING:
                values.append(None)
            else:
                values.append(body[start : start + length].decode(errors="surrogateescape"))
                start += length
            # the top bit would be a batch: as a size it runs past every frame
            pos = start + 4 + unpack_size(body, start)[0]
            entries.append(body[start:pos])
    except error:
        raise DamagedEntries(read_publish_v2(body[:pos]), f"{end - pos} bytes", pos) from None
    if pos > end:
        begin = end - len(entries[-1]) - 10 - (0 if length == NULL_STRING else length)
        raise DamagedEntries(read_publish_v2(body[:begin]), f"{pos - end} bytes too few", end)
    return Publish(
        publisher_id=publisher_id,
        count=len(ids),
        publishing_ids=b"".join(ids),
        entries=b"".join(entries),
        records=len(ids),
        filter_values=tuple(values),
        version=2,
        claimed=None if claimed == len(ids) else claimed,
    )


def _split_alike(body: bytes) -> tuple[int, bytes, bytes] | None:
    """Count, ids and entries of a Publish whose entries are simple and have all the same size.

    None for any other, which are read entry by entry.
    """
    pos, end = _HEAD.size, len(body)
    if end - pos < _LEAST:
        return None
    size_field = body[pos + 8 : pos + 12]
    step = _LEAST + int.from_bytes(size_field, "big")
    count, rest = divmod(end - pos, step)
    if rest or size_field[0] & 0x80:
        return None
    for at, byte in enumerate(size_field, pos + 8):
        if body[at::step].count(byte) != count:
            return None
    ids, entries = zip(*iter_unpack(f"8s{step - 8}s", memoryview(body)[pos:]), strict=True)
    return count, b"".join(ids), b"".join(entries)


def _read_head(body: bytes) -> tuple[int, int]:
    """The publisher id, and the count that follows it, which is not trusted."""
    reader = Reader(body, 4)
    return reader.u8(), reader.u32()


def write_publish(frame: Publish) -> list[bytes]:
    """The frame's body in pieces; ids and filter values that are missing are left out."""
    ids = frame.publishing_ids
    columns = [[ids[at : at + 8] for at in range(0, len(ids), 8)], _split(frame.entries)]
    if frame.version == 2:
        columns.insert(1, [pack_string(value) for value in frame.filter_values])
    rows = chain.from_iterable(zip_longest(*columns, fillvalue=b""))
    return [_HEAD.pack(frame.KEY, frame.version, frame.publisher_id, _count(frame)), *rows]


def _count(frame: Publish) -> int:
    return frame.count if frame.claimed is None else frame.claimed


def _split(entries: bytes) -> list[bytes]:
    """The entries, one by one: the same as `entries.spans`, but without an object for each."""
    pieces: list[bytes] = []
    pos, end = 0, len(entries)
    unpack_size = _U32.unpack_from
    while pos < end:
        start = pos
        (size,) = unpack_size(entries, start)
        if size < _BATCH_BIT:
            pos += 4 + size
        else:
            pos += _BATCH_HEADER + unpack_size(entries, start + 7)[0]
        pieces.append(entries[start:pos])
    return pieces
