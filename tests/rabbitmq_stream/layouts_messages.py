"""Golden vectors of Publish, Deliver, chunks and entries of RabbitMQ Stream, and the types of their fields.

By the notes (docs/protocols/rabbitmq-stream.md, 2, 3, 6 and 7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fakebrokers.rabbitmq_stream import frames as f
from tests.examples import Example, Kind, literal, number, record

ALL_BYTES = bytes(range(256))

U8, U16, U32, U64 = number(8), number(16), number(32), number(64)
I16, I64 = number(16, signed=True), number(64, signed=True)

_TEXTS = literal(
    {"a": b"\0\1a", "bc": b"\0\2bc", "def": b"\0\3def", "ghij": b"\0\4ghij"},
    empty=Example("", b"\0\0"),
    blanks=Example(" a  b\t\0", b"\0\7 a  b\t\0"),
    not_ASCII=Example("é€", bytes.fromhex("0005 c3a9 e282ac")),
    not_UTF8=Example("\udcff", b"\0\1\xff"),
    two_bytes_of_length=Example("x" * 258, b"\1\2" + b"x" * 258),
)
#: Of requests, which have no null: a length of 0xFFFF is one. Of answers null is the empty string.
ASKED = _TEXTS.also(longest=Example("x" * 65535, b"\xff\xff" + b"x" * 65535))
SENT = _TEXTS.also(
    longest=Example("x" * 65534, b"\xff\xfe" + b"x" * 65534), null=Example("", b"\xff\xff", False)
)
NULLABLE = _TEXTS.also(longest=SENT.odd["longest"], null=Example(None, b"\xff\xff"))


def framed(body: bytes) -> bytes:
    """A body with its size in front."""
    return len(body).to_bytes(4) + body


class Entry(NamedTuple):
    """An entry of a Publish or a chunk: its bytes, and how many messages it stands for."""

    wire: bytes
    bodies: tuple[bytes, ...] | None
    records: int = 1


def _entry(data: str, *bodies: bytes, records: int = 1) -> Entry:
    return Entry(bytes.fromhex(data), bodies or None, records)


#: As they lie on the wire (section 6); the last four cannot be opened.
ENTRIES: Mapping[str, Entry] = {
    "simple": _entry("00000002 6869", b"hi"),
    "empty": _entry("00000000", b""),
    "every byte": Entry(b"\0\0\1\0" + ALL_BYTES, (ALL_BYTES,)),
    "three bytes of size": Entry(b"\0\1\2\3" + b"x" * 0x10203, (b"x" * 0x10203,)),
    "batch": _entry("80 0002 0000000b 0000000b 00000002 6869 00000001 80", b"hi", b"\x80", records=2),
    "batch of one": _entry("80 0001 00000004 00000004 00000000", b""),
    "gzip": _entry(
        "90 0002 0000000b 0000001f 1f8b080000000000020363606060cac8646060606c0000e058a34a0b000000",
        *(b"hi", b"\x80"),
        records=2,
    ),
    "snappy": _entry("a0 ffff 01020304 00000002 ff80", records=0xFFFF),
    "lz4": _entry("b0 0102 ffffffff 00000001 00", records=0x0102),
    "zstd": _entry("c0 8000 80000000 00000001 28", records=0x8000),
    "compression 7": _entry("f0 0001 00000004 00000001 28"),
}


class _Published(NamedTuple):
    """Entries of a Publish, as they lie and as they are read."""

    ids: tuple[int, ...]
    entries: tuple[Entry, ...]
    values: tuple[str | None, ...] = ()
    claimed: int | None = None


def published_frame(version: int, publisher_id: int, published: _Published) -> f.Publish:
    ids, entries, values, claimed = published
    return f.Publish(
        publisher_id=publisher_id,
        count=len(entries),
        publishing_ids=b"".join([each.to_bytes(8) for each in ids]),
        entries=b"".join([each.wire for each in entries]),
        records=sum(each.records for each in entries),
        filter_values=values,
        version=version,
        batches=sum(each.wire[0] >> 7 for each in entries),
        claimed=claimed,
    )


def _published(*ids: int, claimed: int | None = None, **entries: Entry) -> Example:
    """Version 1: a count, and in front of each entry its id."""
    packed = [each.to_bytes(8) + entry.wire for each, entry in zip(ids, entries.values(), strict=True)]
    count = len(packed) if claimed is None else claimed
    value = _Published(ids, tuple(entries.values()), (), claimed)
    return Example(value, count.to_bytes(4) + b"".join(packed))


HI, NOTHING, BATCH = ENTRIES["simple"], ENTRIES["empty"], ENTRIES["batch"]
PUBLISHED = Kind(
    (_published(0x0102030405060708, a=HI), _published(1, 2, a=HI, b=BATCH)),
    {
        "none": _published(),
        "twice the same": _published(7, 7, a=HI, b=HI),
        "ids that fall": _published(3, 2, a=HI, b=NOTHING),
        "id zero": _published(0, a=HI),
        "id sign bit": _published(1 << 63, a=HI),
        "id largest": _published(2**64 - 1, a=HI),
        "more counted": _published(1, a=HI, claimed=0x80000000),
        "fewer counted": _published(1, 2, a=HI, b=HI, claimed=1),
        "none counted": _published(1, a=HI, claimed=0),
        **{f"entry {name}": _published(9, 10, a=each, b=HI) for name, each in ENTRIES.items()},
    },
)


def _filtered(*rows: tuple[int, Example, Entry], claimed: int | None = None) -> Example:
    """Version 2: a count, and in front of each entry its id and a filter value."""
    packed = [number.to_bytes(8) + value.wire + entry.wire for number, value, entry in rows]
    count = len(packed) if claimed is None else claimed
    value = _Published(
        tuple([number for number, _, _ in rows]),
        tuple([entry for _, _, entry in rows]),
        tuple([value.value for _, value, _ in rows]),
        claimed,
    )
    return Example(value, count.to_bytes(4) + b"".join(packed))


_NO_VALUE, _A_VALUE, _OTHER_VALUE = NULLABLE.odd["null"], *NULLABLE.usual[:2]
FILTERED = Kind(
    (_filtered((1, _A_VALUE, HI)), _filtered((0x0102030405060708, _NO_VALUE, HI))),
    {
        "none": _filtered(),
        "two": _filtered((1, _A_VALUE, HI), (2, _OTHER_VALUE, NOTHING)),
        "twice the same": _filtered((1, _A_VALUE, HI), (1, _A_VALUE, HI)),
        "one with a value": _filtered((2, _NO_VALUE, HI), (1, _A_VALUE, HI)),
        "id zero": _filtered((0, _A_VALUE, HI)),
        "id sign bit": _filtered((1 << 63, _A_VALUE, HI)),
        "id largest": _filtered((2**64 - 1, _A_VALUE, HI)),
        "more counted": _filtered((1, _A_VALUE, HI), claimed=0x80000000),
        "fewer counted": _filtered((1, _A_VALUE, HI), (2, _A_VALUE, HI), claimed=1),
        **{f"value {name}": _filtered((1, each, HI)) for name, each in NULLABLE.odd.items()},
        **{f"entry {name}": _filtered((1, _A_VALUE, ENTRIES[name])) for name in ("empty", "every byte")},
    },
)

CHUNK_DATA = literal(
    {HI.wire: HI.wire, HI.wire + BATCH.wire: HI.wire + BATCH.wire},
    empty=Example(b"", b""),
    every_byte=Example(ENTRIES["every byte"].wire, ENTRIES["every byte"].wire),
    no_entry=Example(b"\0\0\0\7", b"\0\0\0\7"),
)
#: Of the data, unless something else is said.
DATA_LENGTH = literal(
    {None: b""},
    claims_nothing=Example(0, bytes(4)),
    claims_more=Example(0x01020304, b"\1\2\3\4"),
    claims_sign_bit=Example(1 << 31, b"\x80\0\0\0"),
    claims_largest=Example(0xFFFFFFFF, b"\xff\xff\xff\xff"),
)


def _chunk(parts: Mapping[str, bytes]) -> bytes:
    """The table of section 7."""
    length = parts["data_length"] or len(parts["data"]).to_bytes(4)
    names = ["magic", "chunk_type", "entries", "records", "timestamp_ms", "epoch", "first_offset", "crc"]
    head = b"".join([parts[name] for name in names]) + length
    return head + parts["trailer_length"] + parts["bloom_size"] + bytes(3) + parts["data"]


CHUNK = record(
    f.Chunk,
    {
        "magic": literal({0x50: b"P"}, zero=Example(0, b"\0"), largest=Example(0xFF, b"\xff")),
        "chunk_type": U8,
        "entries": U16,
        "records": U32,
        "timestamp_ms": I64,
        "epoch": U64,
        "first_offset": U64,
        "crc": U32.also(right=Example(0x2B0C4D9E, bytes.fromhex("2b0c4d9e"))),
        "trailer_length": U32,
        "bloom_size": U8,
        "data": CHUNK_DATA,
        "data_length": DATA_LENGTH,
    },
    _chunk,
)
