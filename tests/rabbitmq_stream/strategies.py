"""Hypothesis strategies: any well-formed frame of any class."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

from hypothesis import strategies as st

from fakebrokers.rabbitmq_stream import wiretypes as wt
from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codes import Compression, OffsetType
from fakebrokers.rabbitmq_stream.entries import simple_entries
from fakebrokers.rabbitmq_stream.frames import Deliver, Publish, StreamFrame
from fakebrokers.rabbitmq_stream.publishing import publish

u8 = st.integers(0, 0xFF)
u16 = st.integers(0, 0xFFFF)
u32 = st.integers(0, 0xFFFFFFFF)
u64 = st.integers(0, 2**64 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
bodies = st.binary(max_size=30)

#: names are opaque to a broker: also bytes that are no UTF-8
text = st.one_of(
    st.text(max_size=12), st.binary(max_size=12).map(lambda raw: raw.decode(errors="surrogateescape"))
)
texts = st.lists(text, max_size=4).map(tuple)
maps = st.dictionaries(text, text, max_size=4)
reply_maps = st.dictionaries(text, st.none() | text, max_size=4)
versions = st.lists(st.builds(wt.CommandVersions, u16, u16, u16), max_size=4).map(tuple)

_FIELDS: dict[Any, st.SearchStrategy[Any]] = {
    wt.U8: u8,
    wt.U16: u16,
    wt.I16: st.integers(-0x8000, 0x7FFF),
    wt.U32: u32,
    wt.U64: u64,
    wt.InitialCredit: u16,
    wt.Text: text,
    wt.Texts: texts,
    wt.CountedTexts: texts,
    wt.Map: maps,
    wt.OptionalMap: st.none() | maps,
    wt.SaslData: st.none() | bodies,
    wt.ReplyText: text,
    wt.ReplyTexts: texts,
    wt.ReplyMap: reply_maps,
    wt.OptionalReplyMap: st.none() | reply_maps,
    wt.Challenge: st.none() | bodies,
    wt.Stats: st.dictionaries(text, i64, max_size=4),
    wt.Versions: versions,
    wt.ReplyVersions: versions,
    wt.Brokers: st.lists(st.builds(wt.BrokerAddress, u16, text, u32), max_size=3).map(tuple),
    wt.Streams: st.lists(
        st.builds(wt.StreamMetadata, text, u16, u16, st.lists(u16, max_size=3).map(tuple)), max_size=3
    ).map(tuple),
    wt.PackedIds: st.lists(u64, max_size=5).map(pack_ids),
    wt.Errors: st.lists(st.tuples(u64, u16), max_size=4).map(tuple),
}

_SPECS = st.one_of(
    st.tuples(st.sampled_from([OffsetType.FIRST, OffsetType.LAST, OffsetType.NEXT]), st.none()),
    st.tuples(st.just(OffsetType.OFFSET), u64),
    st.tuples(st.just(OffsetType.TIMESTAMP), i64),
)
_ANSWERED_SPECS = st.one_of(
    _SPECS,
    st.tuples(st.integers(0, 3), st.none() | u64),  # rstream sends a value with every type
)


@st.composite
def publishes(draw: st.DrawFn) -> Publish:
    """Publish v1 with simple entries and batches, or v2."""
    if draw(st.booleans()):
        rows = draw(st.lists(st.tuples(u64, bodies, st.none() | text), min_size=1, max_size=6))
        return publish(draw(u8), [row[:2] for row in rows], [row[2] for row in rows])
    return draw(publishes_v1())


@st.composite
def publishes_v1(draw: st.DrawFn) -> Publish:
    """Simple entries and batches, mixed."""
    packed, records, batches = [], 0, 0
    rows = draw(st.lists(st.tuples(u64, st.lists(bodies, min_size=1, max_size=4), st.booleans()), max_size=6))
    for _, messages, is_batch in rows:
        if is_batch:
            compression = draw(st.sampled_from([Compression.NONE, Compression.GZIP]))
            packed.append(batch_entry(messages, compression))
        else:
            packed.append(simple_entries(messages[:1]))
        records += len(messages) if is_batch else 1
        batches += is_batch
    ids = pack_ids([row[0] for row in rows])
    return Publish(draw(u8), len(rows), ids, b"".join(packed), records, batches=batches)


chunks = st.builds(
    Chunk,
    chunk_type=u8,
    entries=u16,
    records=u32,
    timestamp_ms=i64,
    epoch=u64,
    first_offset=u64,
    crc=u32,
    data=st.binary(max_size=50),
    trailer_length=u32,
    bloom_size=u8,
    magic=u8,
    data_length=st.none() | st.integers(51, 0xFFFFFFFF),
)


@st.composite
def _from_fields(draw: st.DrawFn, kind: type[StreamFrame]) -> StreamFrame:
    hints = get_type_hints(kind, include_extras=True)
    values: dict[str, Any] = {}
    for name in kind.__struct_fields__:
        hint = hints[name]
        if hint in (wt.Offset, wt.AnsweredOffset):
            specs = _SPECS if hint == wt.Offset else _ANSWERED_SPECS
            values["offset_type"], values[name] = draw(specs)
        else:
            values[name] = draw(_FIELDS[hint])
    return kind(**values)


def frames(kind: type[StreamFrame]) -> st.SearchStrategy[StreamFrame]:
    """Frames of this class that go over the wire and come back the same."""
    if kind is Publish:
        return publishes()
    if kind is Deliver:
        return st.builds(Deliver, u8, chunks, st.none() | u64)
    return _from_fields(kind)


def is_hand_made(kind: type[StreamFrame]) -> bool:
    """Is the wire form written by hand, not in the annotations?"""
    return not all(get_args(hint) for hint in get_type_hints(kind, include_extras=True).values())
