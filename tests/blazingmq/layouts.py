"""Golden vectors of the events of BlazingMQ by the notes (docs/protocols/blazingmq.md, 1 to 4).

What real SDKs and a broker said is in `golden` and `recorded`; here is what they may say (`tests.examples`).
Control messages are in `layouts_control`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fakebrokers.blazingmq import frames as f
from tests.examples import Example, Kind, Limit, Side, Vector, array, literal, number, record, vectors

ALL_BYTES = bytes(range(256))
I32, U32, U16 = number(32, signed=True), number(32), number(16)

#: Version 1 with a counter, a tick and a client id; a correlation id (sections 2 and 5).
GUID, OTHER_GUID = bytes.fromhex("4000010000000080DE8747FC14A25188"), bytes.fromhex("00010203") + bytes(12)
GUIDS = literal(
    {GUID: GUID, OTHER_GUID: OTHER_GUID},
    zero=Example(bytes(16), bytes(16)),
    sign_bit=Example(b"\x80" + bytes(15), b"\x80" + bytes(15)),
    largest=Example(b"\xff" * 16, b"\xff" * 16),
)

#: With the padding of section 1.1.
DATA = literal(
    {b"hello": b"hello\3\3\3", b"four": b"four\4\4\4\4"},
    empty=Example(b"", b"\4\4\4\4"),
    six_bytes=Example(b"abcdef", b"abcdef\2\2"),
    seven_bytes=Example(b"abcdefg", b"abcdefg\1"),
    every_byte=Example(ALL_BYTES, ALL_BYTES + b"\4\4\4\4"),
    zeros=Example(bytes(4), bytes(4) + b"\4\4\4\4"),
    as_if_padded=Example(b"ab\1", b"ab\1\1"),
    words_of_three_bytes=Example(b"x" * 0x40405, b"x" * 0x40405 + b"\3\3\3"),
)
_LONG_OPTION = bytes.fromhex("FC000102") + bytes(4 * 0x101)
OPTIONS = literal(
    {b"": b"", bytes.fromhex("0400000200000001"): bytes.fromhex("0400000200000001")},
    packed=Example(bytes.fromhex("0E000080"), bytes.fromhex("0E000080")),
    infos=Example(bytes.fromhex("0C400003FFFFFFFF40000000"), bytes.fromhex("0C400003FFFFFFFF40000000")),
    words_of_two_bytes=Example(_LONG_OPTION, _LONG_OPTION),
)
FOUR_BITS = literal(
    {2: b"\2", 0: b"\0"}, four=Example(4, b"\4"), eight=Example(8, b"\x08"), all=Example(15, b"\x0f")
)
THREE_BITS = literal({0: b"\0", 1: b"\1"}, four=Example(4, b"\4"), all=Example(7, b"\7"))


def schema_ids(words: int) -> Kind:
    """Words of a header, and the schema id at its end: an older header has none, a newer one goes on."""
    return literal(
        {(words, 0x0102): b"\1\2\0\0", (words, 3): b"\0\3\0\0"},
        zero=Example((words, 0), bytes(4)),
        sign_bit=Example((words, 0x8000), b"\x80\0\0\0"),
        largest=Example((words, 0xFFFF), b"\xff\xff\0\0"),
        older_header=Example((words - 1, 0), b""),
        newer_header=Example((31, 5), b"\0\5\0\0" + bytes(4 * (31 - words))),
    )


def _message(parts: Mapping[str, bytes]) -> bytes:
    """Sections 2 and 3: sizes in words of four bytes, with flags above them and bits below them."""
    fixed = parts["queue_id"] + parts["guid"] + parts.get("crc", b"") + parts["header_words schema_id"]
    options, data = parts["options"], parts["data"]
    header_words = (8 + len(fixed)) // 4
    words = header_words + (len(options) + len(data)) // 4
    first = bytes([parts["flags"][0] << 4 | words >> 24]) + (words & 0xFFFFFF).to_bytes(3)
    second = (len(options) // 4).to_bytes(3) + bytes([parts["compression"][0] << 5 | header_words])
    return first + second + fixed + options + data


_COMMON = {"flags": FOUR_BITS, "queue_id": I32, "guid": GUIDS}
_REST = {"compression": THREE_BITS, "options": OPTIONS, "data": DATA}
PUT = record(
    f.PutMessage, {**_COMMON, "crc": U32, "header_words schema_id": schema_ids(9), **_REST}, _message
)
PUSH = record(f.PushMessage, {**_COMMON, "header_words schema_id": schema_ids(8), **_REST}, _message)
#: Flag 1 of a PUSH: no data follow, not even padding.
_IMPLICIT = Example(
    f.PushMessage(queue_id=1, guid=GUID, data=b"", flags=1),
    bytes.fromhex("10000008 00000008 00000001") + GUID + bytes(4),
    is_written=False,
)

CORRELATION = literal(
    {0x010203: b"\1\2\3", 4: b"\0\0\4"},
    zero=Example(0, b"\0\0\0"),
    sign_bit=Example(0x800000, b"\x80\0\0"),
    largest=Example(0xFFFFFF, b"\xff\xff\xff"),
)
STATUS = literal(
    {1: b"\1", 6: b"\6"},
    zero=Example(0, b"\0"),
    **{name: Example(code, bytes([code])) for name, code in {"two": 2, "eight": 8, "largest": 15}.items()},
)
ACK = record(f.AckMessage, {"status": STATUS, "correlation_id": CORRELATION, "guid": GUIDS, "queue_id": I32})
CONFIRM = record(f.ConfirmMessage, {"queue_id": I32, "guid": GUIDS, "sub_id": I32})


def event(kind: int, body: bytes, encoding: int = 0) -> bytes:
    """An event of version 1 with the usual header."""
    return (8 + len(body)).to_bytes(4) + bytes([0x40 | kind, 2, encoding, 0]) + body


def _messages(
    kind: type[Any], number: int, item: Kind, odd: Mapping[str, Example], *, may_be_none: bool
) -> Kind:
    messages = array(item, b"".join).also(**odd)
    rest = literal({b"": b""}, what_cannot_be_read=Example(b"\0\0\xff\xff" * 3, b"\0\0\xff\xff" * 3))
    fields = {"messages": messages if may_be_none else messages.without("none"), "rest": rest}
    return record(kind, fields, lambda parts: event(number, b"".join(parts.values())), twice=True)


def _items(kind: type[Any], number: int, item: Kind) -> Kind:
    """Section 4: what the header says of the words per item; newer peers add some."""
    whole = record(
        kind,
        {
            "messages": array(item, b"".join),
            "rest": literal({b"": b""}, less_than_an_item=Example(b"\xff\1\2", b"\xff\1\2")),
        },
        lambda parts: event(number, b"\x16\0\0\0" + b"".join(parts.values())),
        twice=True,
    )
    first, second = item.usual[:2]
    longer = [each.wire + bytes(12) for each in (first, second)]
    wider = Example(
        kind(messages=(first.value, second.value), item_words=9),
        event(number, b"\x19\0\0\0" + b"".join(longer)),
    )
    longest = Example(
        kind(messages=(first.value,), item_words=15), event(number, b"\x1f\0\0\0" + first.wire + bytes(36))
    )
    added = Example(
        kind(messages=(first.value,), item_words=7),
        event(number, b"\x17\0\0\0" + first.wire + b"new!"),
        is_written=False,
    )
    header = Example(
        kind(messages=(first.value,)), event(number, b"\x26\xff\xff\xff" + b"new!" + first.wire), False
    )
    return whole.also(
        item_words_nine=wider, item_words_fifteen=longest, item_words_new=added, newer_header=header
    )


_OTHER = record(
    f.OtherEvent,
    {
        "type": literal({6: b"\x06", 14: b"\x0e"}, zero=Example(0, b"\0"), largest=Example(63, b"\x3f")),
        "body": literal(
            {b"body": b"body"}, empty=Example(b"", b""), every_byte=Example(ALL_BYTES, ALL_BYTES)
        ),
    },
    lambda parts: event(parts["type"][0], parts["body"]),
)


def _heartbeat(kind: type[Any], number: int) -> Kind:
    return literal(
        {kind(): event(number, b"")},
        body=Example(kind(), event(number, b"body"), False),
        another_version=Example(kind(), bytes([0, 0, 0, 8, number, 2, 0, 0]), False),
        newer_header=Example(kind(), bytes([0, 0, 0, 12, 0x40 | number, 3, 0, 0]) + b"new!", False),
    )


def _pushed(words: int, last: bytes = b"\1") -> bytes:
    """A PUSH of a header of eight words and two of data that says it has so many words."""
    return words.to_bytes(4) + bytes.fromhex("00000008 00000001") + GUID + bytes(4) + b"datadat" + last


EVENTS: tuple[tuple[str, Side, Kind], ...] = (
    ("Put", "server", _messages(f.Put, 2, PUT, {}, may_be_none=False)),
    (
        "Push",
        "client",
        _messages(
            f.Push,
            4,
            PUSH,
            {"without_data": Example((_IMPLICIT.value,), _IMPLICIT.wire, False)},
            may_be_none=False,
        ),
    ),
    ("Ack", "client", _items(f.Ack, 5, ACK)),
    ("Confirm", "server", _items(f.Confirm, 3, CONFIRM)),
    ("Reject", "server", _items(f.Reject, 13, CONFIRM)),
    ("HeartbeatRequest", "server", _heartbeat(f.HeartbeatRequest, 11)),
    ("HeartbeatResponse", "client", _heartbeat(f.HeartbeatResponse, 12)),
    ("OtherEvent", "client", _OTHER),
)


def headed_otherwise(name: str, reader: Side, kind: Kind) -> Iterator[Vector]:
    """Section 1: a longer header, another version and reserved bits change nothing."""
    frame, wire, _ = kind.usual[0]
    head, body = wire[4:8], wire[8:]
    for label, other in {
        "a longer header": head[:1] + b"\3" + head[2:] + b"new!",
        "a much longer header": head[:1] + b"\xff" + head[2:] + bytes(4 * 253),
        "version 0": bytes([head[0] & 0x3F]) + head[1:],
        "version 3": bytes([head[0] | 0xC0]) + head[1:],
        "reserved bits": head[:2] + bytes([head[2] | 0x1F, 0xFF]),
    }.items():
        yield Vector(
            f"{name}: {label}", reader, frame, (4 + len(other) + len(body)).to_bytes(4) + other + body, False
        )


def by_the_notes() -> Iterator[Vector]:
    """All of them, without control messages."""
    for name, reader, kind in EVENTS:
        yield from vectors(name, reader, kind)
        yield from headed_otherwise(name, reader, kind)


#: What fields have to be met with where their type says too much or too little.
_GUIDS = (GUID, OTHER_GUID, bytes(16), b"\x80" + bytes(15), b"\xff" * 16)
_FIXED: Mapping[str, Any] = {
    "flags": (0, 2, 4, 8, 15),
    "compression": (0, 1, 4, 7),
    "guid": _GUIDS,
    "schema_id": (0, 3, 0x8000, 0xFFFF),
    "options": [each.value for each in (*OPTIONS.usual, *OPTIONS.odd.values())],
}
_ITEMS = {"messages": (), "rest": (b"", b"\xff\1\2"), "item_words": (6, 7, 9, 15)}
WANTED: Mapping[str, Any] = {
    **{
        f"{name}.{field}": values
        for name in ("PutMessage", "PushMessage")
        for field, values in _FIXED.items()
    },
    "PutMessage.header_words": (8, 9, 31),
    "PushMessage.header_words": (7, 8, 31),
    "Put.rest": (b"", b"\0\0\xff\xff" * 3),
    "Push.rest": (b"", b"\0\0\xff\xff" * 3),
    "OtherEvent.type": (0, 6, 14, 63),
    **{f"{name}.guid": _GUIDS for name in ("AckMessage", "ConfirmMessage")},
    "AckMessage.status": (0, 1, 2, 6, 8, 15),
    "AckMessage.correlation_id": (0, 0x800000, 0xFFFFFF),
    **{
        f"{name}.{field}": _ITEMS[field]
        for name in ("Ack", "Confirm", "Reject")
        for field in ("rest", "item_words")
    },
}

#: Gaps of the table, and why they cannot be closed.
NEVER = {f"{kind}.messages: none": "an event without a message cannot be read" for kind in ("Put", "Push")}

LARGEST = 128 << 20  #: bytes of an event that a fake and the judge take

#: Of the length, and of what an event says of its own parts.
LIMITED = (
    Limit("no event is shorter", "client", bytes.fromhex("00000008 4B020000"), "frame", "frame"),
    Limit("too short", "client", bytes.fromhex("00000007 4B020000"), "framing", "framing"),
    Limit("of no bytes", "client", bytes(4), "framing", "framing"),
    Limit("largest", "client", LARGEST.to_bytes(4) + b"\x44\2\0\0", "waits", "waits"),
    Limit("too large", "client", (LARGEST + 1).to_bytes(4) + b"\x44\2\0\0", "too-large", "too-large"),
    Limit("largest that there can be", "client", b"\x7f\xff\xff\xff", "too-large", "too-large"),
    Limit("a fragment", "client", bytes.fromhex("80000008 4B020000"), "framing", "framing"),
    Limit("a header of one word", "client", bytes.fromhex("00000008 4B010000"), "event", "event"),
    Limit("a header that goes on", "client", bytes.fromhex("0000000B 4B030000 000000"), "event", "event"),
    Limit("encoding 2", "client", event(1, bytes.fromhex("3080000004040404"), 0x40), "control", "control"),
    Limit("items of five words", "client", event(5, b"\x15\0\0\0" + bytes(24)), "event", "event"),
    Limit("no header of items", "client", event(5, b"\x06\0\0\0" + bytes(24)), "event", "event"),
    Limit("half a header of items", "client", event(5, b"\x16\0\0"), "event", "event"),
    Limit("no message", "client", event(4, b""), "event", "event"),
    *[
        Limit(f"a PUSH of {words} words", "client", event(4, _pushed(words)), outcome, outcome)
        for words, outcome in ((9, "event"), (10, "frame"), (11, "event"))
    ],
    *[
        Limit(f"padding of {count}", "client", event(4, _pushed(10, bytes([count]))), outcome, outcome)
        for count, outcome in ((0, "event"), (1, "frame"), (4, "frame"), (5, "event"))
    ],
)
