"""Golden vectors of RabbitMQ Stream by the notes (docs/protocols/rabbitmq-stream.md, 2, 3, 6 and 7).

What real servers and clients said is in `golden`; here is what they may say: see `tests.examples`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fakebrokers.rabbitmq_stream import frames as f
from tests.examples import Example, Kind, Limit, Side, Vector, array, literal, optional, record, vectors
from tests.rabbitmq_stream.layouts_messages import (
    ALL_BYTES,
    ASKED,
    CHUNK,
    ENTRIES,
    FILTERED,
    HI,
    I16,
    I64,
    NULLABLE,
    PUBLISHED,
    SENT,
    U8,
    U16,
    U32,
    U64,
    framed,
    published_frame,
)

LONG_BYTES = literal(
    {b"\0me\0pw": b"\0\0\0\6\0me\0pw"},
    empty=Example(b"", bytes(4)),
    every_byte=Example(ALL_BYTES, b"\0\0\1\0" + ALL_BYTES),
    null=Example(None, b"\xff\xff\xff\xff"),
)
SHORT_BYTES = literal(
    {b"who?": b"\0\4who?"},
    empty=Example(b"", b"\0\0"),
    every_byte=Example(ALL_BYTES, b"\1\0" + ALL_BYTES),
    absent=Example(None, b""),
)


def _counted(items: list[bytes]) -> bytes:
    return len(items).to_bytes(4) + b"".join(items)


def _asked(kind: Kind, *, is_last: bool = True) -> Kind:
    """An array or map of a request: if it is the last field its count means nothing (section 2)."""
    first = kind.usual[0]
    if not is_last:
        return kind
    return kind.also(another_count=Example(first.value, b"\0\0\0\7" + first.wire[4:], False))


def _sent(kind: Kind) -> Kind:
    return kind.also(null=Example(type(kind.usual[0].value)(), b"\xff\xff\xff\xff", False))


def _map(key: Kind, value: Kind) -> Kind:
    pair = record(lambda key, value: (key, value), {"key": key, "value": value})
    return array(pair, _counted, dict, may_repeat=False)


def _pairs(**fields: Kind) -> Kind:
    """Tuples without names."""
    return record(lambda **values: tuple(values.values()), fields)


def _spec(**more: Example) -> Kind:
    """An offset type, and a value after 4 and 5."""
    usual = {(4, 0x0102030405060708): b"\0\4\1\2\3\4\5\6\7\10", (1, None): b"\0\1"}
    odd = {
        "last": Example((2, None), b"\0\2"),
        "next": Example((3, None), b"\0\3"),
        "offset zero": Example((4, 0), b"\0\4" + bytes(8)),
        "offset largest": Example((4, 2**64 - 1), b"\0\4" + b"\xff" * 8),
        "offset sign bit": Example((4, 2**63), b"\0\4\x80" + bytes(7)),
        "time zero": Example((5, 0), b"\0\5" + bytes(8)),
        "time before 1970": Example((5, -2), b"\0\5" + b"\xff" * 7 + b"\xfe"),
        "time largest": Example((5, 2**63 - 1), b"\0\5\x7f" + b"\xff" * 7),
        "time smallest": Example((5, -(2**63)), b"\0\5\x80" + bytes(7)),
    }
    return Kind(literal(usual).usual, {**odd, **more})


#: rstream sends a value with each type.
_ANSWERED = {
    "none": Example((0, None), b"\0\0"),
    "none with a value": Example((0, 7), b"\0\0" + bytes(7) + b"\7"),
    "first with a value": Example((1, 2**64 - 1), b"\0\1" + b"\xff" * 8),
    "last with a value": Example((2, 0), b"\0\2" + bytes(8)),
    "next with a value": Example((3, 2**63), b"\0\3\x80" + bytes(7)),
}

VERSIONS = array(record(f.CommandVersions, {"key": U16, "min_version": U16, "max_version": U16}), _counted)
BROKERS = array(record(f.BrokerAddress, {"reference": U16, "host": SENT, "port": U32}), _counted)
STREAMS = array(
    record(
        f.StreamMetadata,
        {"stream": SENT, "code": U16, "leader": U16, "replicas": _sent(array(U16, _counted))},
    ),
    _counted,
)

IDS = array(U64, _counted, lambda ids: b"".join([each.to_bytes(8) for each in ids]))

#: The words of the tables below.
WORDS: Mapping[str, Kind] = {
    "u8": U8,
    "u16": U16,
    "i16": I16,
    "u32": U32,
    "u64": U64,
    "string": ASKED,
    "sent-string": SENT,
    "bytes": LONG_BYTES,
    "sent-reason": SENT.without("null"),  # nothing is known of a Close whose reason is null
    "challenge": SHORT_BYTES,
    "spec": _spec(),
    "answered-spec": _spec(**_ANSWERED),
    "strings": _asked(array(ASKED.without("longest"), _counted)),
    "strings-inside": array(ASKED.without("longest"), _counted),
    "sent-strings": _sent(array(SENT.without("longest"), _counted)),
    "map": _asked(_map(ASKED.without("longest"), ASKED.without("longest"))),
    "maybe-map": optional(_asked(_map(ASKED.without("longest"), ASKED.without("longest")))),
    "sent-map": _sent(_map(SENT.without("longest"), NULLABLE.without("longest"))),
    "maybe-sent-map": optional(_sent(_map(SENT.without("longest"), NULLABLE.without("longest")))),
    "stats": _sent(_map(SENT.without("longest"), I64)),
    "versions": _asked(VERSIONS),
    "sent-versions": _sent(VERSIONS),
    "brokers": _sent(BROKERS),
    "streams": _sent(STREAMS),
    "ids": IDS,
    "errors": _sent(array(_pairs(id=U64, code=U16), _counted)),
}

#: Key and fields of what clients send.
ASKS = """
DeclarePublisher        0001 correlation_id:u32 publisher_id:u8 reference:string stream:string
QueryPublisherSequence  0005 correlation_id:u32 reference:string stream:string
DeletePublisher         0006 correlation_id:u32 publisher_id:u8
Subscribe               0007 correlation_id:u32 subscription_id:u8 stream:string offset_type+offset:spec
+                            credit:u16 properties:maybe-map
Credit                  0009 subscription_id:u8 credit:i16
StoreOffset             000a reference:string stream:string offset:u64
QueryOffset             000b correlation_id:u32 reference:string stream:string
Unsubscribe             000c correlation_id:u32 subscription_id:u8
Create                  000d correlation_id:u32 stream:string arguments:map
Delete                  000e correlation_id:u32 stream:string
Metadata                000f correlation_id:u32 streams:strings
PeerProperties          0011 correlation_id:u32 properties:map
SaslHandshake           0012 correlation_id:u32
SaslAuthenticate        0013 correlation_id:u32 mechanism:string data:bytes
Tune                    0014 frame_max:u32 heartbeat:u32
Open                    0015 correlation_id:u32 virtual_host:string
Close                   0016 correlation_id:u32 code:u16 reason:string
CloseResponse           8016 correlation_id:u32 code:u16
Heartbeat               0017
Route                   0018 correlation_id:u32 routing_key:string super_stream:string
Partitions              0019 correlation_id:u32 super_stream:string
ConsumerUpdateResponse  801a correlation_id:u32 code:u16 offset_type+offset:answered-spec
ExchangeCommandVersions 001b correlation_id:u32 commands:versions
StreamStats             001c correlation_id:u32 stream:string
CreateSuperStream       001d correlation_id:u32 name:string partitions:strings-inside
+                            binding_keys:strings-inside arguments:map
DeleteSuperStream       001e correlation_id:u32 name:string
ResolveOffsetSpec       001f correlation_id:u32 stream:string offset_type+offset:spec properties:maybe-map
"""

#: Key and fields of what servers send.
SENDS = """
DeclarePublisherResponse        8001 correlation_id:u32 code:u16
PublishConfirm                  0003 publisher_id:u8 publishing_ids:ids
PublishError                    0004 publisher_id:u8 errors:errors
QueryPublisherSequenceResponse  8005 correlation_id:u32 code:u16 sequence:u64
DeletePublisherResponse         8006 correlation_id:u32 code:u16
SubscribeResponse               8007 correlation_id:u32 code:u16
CreditResponse                  8009 code:u16 subscription_id:u8
QueryOffsetResponse             800b correlation_id:u32 code:u16 offset:u64
UnsubscribeResponse             800c correlation_id:u32 code:u16
CreateResponse                  800d correlation_id:u32 code:u16
DeleteResponse                  800e correlation_id:u32 code:u16
MetadataResponse                800f correlation_id:u32 brokers:brokers streams:streams
MetadataUpdate                  0010 code:u16 stream:sent-string
PeerPropertiesResponse          8011 correlation_id:u32 code:u16 properties:sent-map
SaslHandshakeResponse           8012 correlation_id:u32 code:u16 mechanisms:sent-strings
SaslAuthenticateResponse        8013 correlation_id:u32 code:u16 challenge:challenge
Tune                            0014 frame_max:u32 heartbeat:u32
OpenResponse                    8015 correlation_id:u32 code:u16 properties:maybe-sent-map
Close                           0016 correlation_id:u32 code:u16 reason:sent-reason
CloseResponse                   8016 correlation_id:u32 code:u16
Heartbeat                       0017
RouteResponse                   8018 correlation_id:u32 code:u16 streams:sent-strings
PartitionsResponse              8019 correlation_id:u32 code:u16 streams:sent-strings
ConsumerUpdate                  001a correlation_id:u32 subscription_id:u8 active:u8
ExchangeCommandVersionsResponse 801b correlation_id:u32 code:u16 commands:sent-versions
StreamStatsResponse             801c correlation_id:u32 code:u16 stats:stats
CreateSuperStreamResponse       801d correlation_id:u32 code:u16
DeleteSuperStreamResponse       801e correlation_id:u32 code:u16
ResolveOffsetSpecResponse       801f correlation_id:u32 code:u16 offset_type:u16 offset:u64
"""


def _frame(kind: type[Any], head: bytes, fields: Mapping[str, Kind]) -> Kind:
    return record(kind, fields, lambda parts: framed(head + b"".join(parts.values())), twice=True)


def _of_table(table: str) -> Iterator[tuple[str, Kind]]:
    for line in table.replace("\n+", " ").strip().splitlines():
        name, key, *fields = line.split()
        kinds = (field.split(":") for field in fields)
        yield (
            name,
            _frame(
                getattr(f, name),
                bytes.fromhex(key) + b"\0\1",
                {names.replace("+", " "): WORDS[word] for names, word in kinds},
            ),
        )


def _sized(reader: Side, head: bytes) -> Iterator[Limit]:
    """A frame with one string at its end that is as large as may be, and one that is larger."""
    for name, size, outcome in (("the largest", LARGEST, "frame"), ("too large", LARGEST + 1, "too-large")):
        text = b"x" * (size - len(head) - 2)
        body = head + len(text).to_bytes(2) + text
        yield Limit(f"{name} for a {reader}", reader, framed(body), outcome, outcome)
        if outcome != "frame":
            yield Limit(f"{name} for a {reader}, at once", reader, framed(body)[:4], outcome, outcome)


#: Answers whose last field takes all that is left, or need not be there.
_OPEN_ENDED = ("SaslAuthenticateResponse", "OpenResponse")


def _otherwise() -> Iterator[Vector]:
    """Keys of clients and servers that are as good, and what newer servers add after what is known."""
    asks, sends = dict(_of_table(ASKS)), dict(_of_table(SENDS))
    for reader, name, key, kind in (
        ("server", "Tune", "8014", asks["Tune"]),
        ("client", "RouteResponse", "0018", sends["RouteResponse"]),
        ("client", "PartitionsResponse", "0019", sends["PartitionsResponse"]),
    ):
        frame, wire, _ = kind.usual[0]
        yield Vector(f"{name}: another key", reader, frame, wire[:4] + bytes.fromhex(key) + wire[6:], False)  # type: ignore[arg-type]
    for name, kind in sends.items():
        if name not in _OPEN_ENDED:
            frame, wire, _ = kind.usual[0]
            yield Vector(f"{name}: more after it", "client", frame, framed(wire[4:] + b"new"), False)


def by_the_notes() -> Iterator[Vector]:
    """All of them."""
    yield from _otherwise()
    for name, kind in _of_table(ASKS):
        yield from vectors(name, "server", kind)
    for name, kind in _of_table(SENDS):
        yield from vectors(name, "client", kind)
    for version, kind in ((1, PUBLISHED), (2, FILTERED)):
        frame = record(
            lambda version=version, **values: published_frame(version, **values),
            {"publisher_id": U8, "published": kind},
            lambda parts, version=version: framed(bytes((0, 2, 0, version)) + b"".join(parts.values())),
            twice=True,
        )
        yield from vectors(f"Publish {version}", "server", frame)
    delivered = {"subscription_id": U8, "chunk": CHUNK}
    yield from vectors("Deliver 1", "client", _frame(f.Deliver, bytes.fromhex("0008 0001"), delivered))
    delivered = {"subscription_id": U8, "committed_chunk_id": U64, "chunk": CHUNK}
    yield from vectors("Deliver 2", "client", _frame(f.Deliver, bytes.fromhex("0008 0002"), delivered))


#: What fields have to be met with where their type says too much or too little.
WANTED: Mapping[str, Any] = {
    "Publish.count": (0, 1, 2),
    "Publish.records": (0, 1, 2, 0x10000),
    "Publish.batches": (0, 1),
    "Publish.version": (1, 2),
    "Publish.claimed": (None, 0, 1, 0x80000000),
    "Publish.publishing_ids": (b"", bytes(8), b"\x80" + bytes(7), b"\xff" * 8),
    "PublishConfirm.publishing_ids": (b"", bytes(8), b"\x80" + bytes(7), b"\xff" * 8),
    "Publish.entries": (b"", *[each.wire + HI.wire for each in ENTRIES.values()]),
    "Chunk.magic": (0, 0x50, 0xFF),
    "Subscribe.offset_type": (1, 2, 3, 4, 5),
    "ResolveOffsetSpec.offset_type": (1, 2, 3, 4, 5),
    "ConsumerUpdateResponse.offset_type": (0, 1, 2, 3, 4, 5),
}

#: Gaps of the table, and why they cannot be closed.
NEVER: Mapping[str, str] = {}

LARGEST = 1024  #: what a size may say, where the tests of limits set one

#: Of sizes, and of what a frame says of its own parts.
LIMITED = (
    *[
        limit
        for reader, head in (("server", "000e 0001 00000001"), ("client", "8012 0001 00000001 0001 00000001"))
        for limit in _sized(reader, bytes.fromhex(head))
    ],
    Limit("size 0", "server", framed(b""), "empty", "empty"),
    Limit("size 1", "server", framed(b"\0"), "empty", "empty"),
    Limit("size 3", "server", framed(b"\0\x17\0"), "unknown", "unknown"),
    Limit("version 0", "server", framed(bytes.fromhex("0017 0000")), "unknown", "unknown"),
    Limit("version 2", "server", framed(bytes.fromhex("0017 0002")), "unknown", "unknown"),
    Limit("Publish 3", "server", framed(bytes.fromhex("0002 0003 01 00000000")), "unknown", "unknown"),
    Limit("Deliver 3", "client", framed(bytes.fromhex("0008 0003") + bytes(70)), "unknown", "unknown"),
    Limit("key 0", "server", framed(bytes.fromhex("0000 0001")), "unknown", "unknown"),
    Limit("key 32", "server", framed(bytes.fromhex("0020 0001 00000001")), "unknown", "unknown"),
    Limit("something after it", "server", framed(bytes.fromhex("0017 0001 00")), "unknown", "malformed"),
    Limit(
        "something after it for a client", "client", framed(bytes.fromhex("0017 0001 00")), "frame", "frame"
    ),
    Limit("no id", "server", framed(bytes.fromhex("0012 0001 000000")), "unknown", "malformed"),
    Limit(
        "half a chunk", "client", framed(bytes.fromhex("0008 0001 01") + bytes(47)), "malformed", "malformed"
    ),
    Limit("a chunk", "client", framed(bytes.fromhex("0008 0001 01") + bytes(48)), "frame", "frame"),
    Limit(
        "half a chunk 2",
        "client",
        framed(bytes.fromhex("0008 0002 01") + bytes(55)),
        "malformed",
        "malformed",
    ),
    Limit("a chunk 2", "client", framed(bytes.fromhex("0008 0002 01") + bytes(56)), "frame", "frame"),
    Limit(
        "offset type 0",
        "server",
        framed(bytes.fromhex("0007 0001 00000001 01 0000 0000 0001")),
        "bad-offset",
        "malformed",
    ),
    Limit(
        "offset type 6",
        "server",
        framed(bytes.fromhex("0007 0001 00000001 01 0000 0006 0001")),
        "bad-offset",
        "malformed",
    ),
)
