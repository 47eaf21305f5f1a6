"""BMQ-3 Publish and ACK: bytes of a PUT, properties, compression, back pressure."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from crc32c import crc32c

from conformance.clients.adapter.messages import body_bytes
from conformance.suite import Client, Expect, scenario
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import AckStatus
from fakebrokers.blazingmq.events import padded
from fakebrokers.blazingmq.frames import PutMessage
from fakebrokers.blazingmq.properties import Content, Property, PropertyType, read_content
from fakebrokers.errors import WireError
from fakebrokers.faults import reply, stall, throttle
from fakebrokers.journal import Record
from scenarios.blazingmq._steps import (
    BOTH,
    PUBLISHER,
    READ_WRITE,
    Q,
    as_texts,
    bodies_are,
    eventually,
    opened,
    posts,
    quiet,
    ready,
    received,
    still_works,
)

Json = dict[str, Any]
WHOLE = {"body_limit": 8 << 20}
MIB = 1 << 20
EVENT_HEADER = 8


def crc_fits(expect: Expect, message: PutMessage) -> None:
    """The checksum is that of the data; that of the padded data is what the document says."""
    plain = crc32c(message.data) == message.crc
    expect.that(
        plain or crc32c(padded(message.data)) == message.crc,
        "the CRC32-C fits the data",
        id="the-crc32-c-fits-the-data",
    )
    expect.tolerate(plain, "it is over the data without padding", id="it-is-over-the-data-without-padding")


def alone(broker: BlazingMQ, expect: Expect, since: int) -> tuple[Record, PutMessage]:
    """The one message that came since then."""
    found = posts(broker, since=since)
    expect.equal(len(found), 1, "one PUT message for a post", id="one-put-message-for-a-post")
    return found[0]


@scenario("BMQ-3.02", "MUST", "critical", basis=["B10"], roles=PUBLISHER, server=WHOLE)
async def checksum_and_padding(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """CRC32-C and padding of PUT.

    Fault: Post sizes 1..9, 1023, 1024, 65535 B uncompressed
    Pass: For each PUT: CRC32-C (init and final xor 0xFFFFFFFF) over the application data without padding
    matches; MessageWords gives a multiple of 4; 1..4 padding bytes, each equal to their count; unpadded size
    equals the payload (plus properties area); non-strict: the CRC matches the padded data instead (the letter
    of the seed and its Node client); fail: it matches neither
    Seen: blazingmq#308; measured: C++ and Java unpadded, Node SDK 1.4.0 padded
    """
    await ready(client, expect)
    for size in (*range(1, 10), 1023, 1024, 65_535):
        mark = broker.journal.last_seq
        payload = body_bytes({"gen": "rand", "seed": size, "len": size})
        expect.outcome(
            await client.publish("q", payload), "acked", "each post is acked", id="each-post-is-acked"
        )
        record, message = alone(broker, expect, mark)
        expect.that(
            message.data == payload,
            "the data are the payload",
            f"{len(message.data)} bytes",
            id="the-data-are-the-payload",
        )
        crc_fits(expect, message)
        header = EVENT_HEADER + 4 * message.header_words + len(message.options)
        pad = record.size - header - size
        expect.that(
            1 <= pad <= 4,
            "1 to 4 padding bytes, the last of which says how many",
            pad,
            id="n-to-n-padding-bytes-the-last-of-which-says-how-many",
        )
        expect.equal(
            record.size % 4,
            0,
            "the message is a multiple of 4 bytes long",
            id="the-message-is-a-multiple-of-n-bytes-long",
        )


TEXT = "grüße, 世界, \U0001f600"
BODIES: list[Json] = [
    {"text": TEXT},
    {"b64": "//7/gAA="},
    {"b64": "AA=="},
    {"gen": "rand", "seed": 1, "len": 255},
    {"gen": "rand", "seed": 2, "len": 256},
    {"gen": "rand", "seed": 3, "len": 4 * MIB},
]


@scenario("BMQ-3.17", "MUST", "high", basis=["B10"], roles=BOTH)
async def bodies(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Text, 1-byte and 4 MiB payloads.

    Fault: Post UTF-8 text, invalid UTF-8, one NUL byte, 255 and 256 B, 4 MiB (consumer limits raised); echo
    back through PUSH
    Pass: Byte-identical at the consumer (SHA-256) in posting order
    Seen: stream-dotnet-client#161; blazingmq-sdk-python 3232e6e
    """
    await ready(client, expect, READ_WRITE, max_unconfirmed_bytes=64 * MIB)
    for each in BODIES:
        expect.outcome(
            await client.publish("q", each, timeout=10.0),
            "acked",
            "each post is acked",
            id="each-post-is-acked",
        )
    messages = await client.wait_messages(len(BODIES), within_s=10.0)
    wanted = [body_bytes(each) for each in BODIES]
    expect.that(
        [m.data for m in broker.messages(Q)] == wanted,
        "the broker has each body as it was",
        id="the-broker-has-each-body-as-it-was",
    )
    bodies_are(
        expect,
        messages,
        wanted,
        "each body is delivered as it was, in order",
        id="each-body-is-delivered-as-it-was-in-order",
    )


@scenario("BMQ-3.18", "MUST", "high", basis=["B10"], roles=PUBLISHER)
async def empty_body(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Zero-length payload.

    Fault: Post empty; the simulator answers a PUT without application data with a negative ACK status 5, so
    that the op ends (a real broker drops it with the rest of its event, and answers nothing)
    Pass: Either a clean `invalid` with no wire traffic, or a well-formed PUT whose application data is 04 04
    04 04 and an op that ends `nacked`; no crash, next post works
    Seen: blazingmq-sdk-python 3232e6e; measured: wheel 1.2.2 rejects it (PAYLOAD_EMPTY)
    """
    await ready(client, expect)
    broker.faults.add(reply(AckStatus.UNKNOWN, kind="PUT", name="empty"))
    expect.may_not_fire("empty", "a client may refuse such a message by itself")
    result = await client.publish("q", b"", timeout=2.0)
    if posts(broker):
        expect.equal(posts(broker)[0][1].data, b"", "the PUT is well formed", id="the-put-is-well-formed")
        expect.outcome(result, "nacked", "the op ends nacked", id="the-op-ends-nacked")
    else:
        expect.failed(
            result,
            ("invalid",),
            "the op fails as invalid, and nothing is sent",
            id="the-op-fails-as-invalid-and-nothing-is-sent",
        )
        expect.that(not received(broker, "Malformed"), "no malformed PUT", id="no-malformed-put")
    broker.faults.clear()
    await still_works(broker, client, expect, "the next post works", id="the-next-post-works")


# properties


def style_fits(expect: Expect, message: PutMessage) -> None:
    """Under a schema id there are places, not lengths, and properties stay uncompressed."""
    if not message.schema_id:
        return
    plain = message.data[:1] == b"\x1b"
    first = int.from_bytes(message.data[6:10]) & 0x3FFFFFF if plain else 0
    expect.tolerate(
        plain,
        "properties under a schema id are not compressed",
        id="properties-under-a-schema-id-are-not-compressed",
    )
    expect.tolerate(
        first == 0,
        "under a schema id their fields hold places",
        first,
        id="under-a-schema-id-their-fields-hold-places",
    )


def content_of(expect: Expect, message: PutMessage) -> Content:
    """Payload and properties of a message on the wire."""
    try:
        return read_content(
            message.data,
            has_properties=message.has_properties,
            schema_id=message.schema_id,
            compression=message.compression,
        )
    except WireError as problem:
        expect.that(False, "the PUT can be read", str(problem), id="the-put-can-be-read")
        raise


def as_property(given: Mapping[str, Any]) -> Property:
    """A property of the script as the fake has it."""
    kind, value = PropertyType[given["type"].upper()], given["value"]
    if kind is PropertyType.BOOL:
        return Property(kind, value == "true")
    if kind is PropertyType.CHAR:
        return Property(kind, body_bytes(value)[0])
    if kind is PropertyType.BINARY:
        return Property(kind, body_bytes(value))
    return Property(kind, value if kind is PropertyType.STRING else int(value))


PROPERTIES: Json = {
    "flag": {"type": "bool", "value": "true"},
    "char": {"type": "char", "value": {"b64": "Bw=="}},
    "short": {"type": "short", "value": "-32768"},
    "int": {"type": "int32", "value": "2147483647"},
    "low": {"type": "int64", "value": "-9223372036854775808"},
    "high": {"type": "int64", "value": "9223372036854775807"},
    "text": {"type": "string", "value": TEXT},
    "bytes": {"type": "binary", "value": {"b64": "AAEA/w=="}},
}


@scenario("BMQ-3.19", "MUST", "high", basis=["B10", "B13"], needs=["properties"], roles=BOTH, server=WHOLE)
async def property_types(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """All property types.

    Fault: Post BOOL, CHAR, SHORT, INT32, INT64 min/max, STRING utf-8, BINARY with NUL (types the library
    cannot produce are left out and noted); echo application data and SchemaId unchanged
    Pass: Flag 2 set; area decodes to the same names, types and values by the rule of the SchemaId (0: value
    lengths; not 0: offsets of the names, first one 0), independent of the order of properties; echoed, equal
    at the consumer; non-strict: SchemaId not 0 but the fields hold value lengths
    Seen: rstream#240; stream-dotnet-client#217; measured: Node SDK 1.4.0 sends lengths under SchemaId 1
    """
    await ready(client, expect, READ_WRITE)
    result = await client.publish("q", b"typed", properties=PROPERTIES)
    expect.outcome(result, "acked", "the post is acked", id="the-post-is-acked")
    _, message = posts(broker)[0]
    expect.that(
        message.has_properties,
        "the PUT has the flag MESSAGE_PROPERTIES",
        id="the-put-has-the-flag-message-properties",
    )
    style_fits(expect, message)
    found = content_of(expect, message)
    wanted = {name: as_property(each) for name, each in PROPERTIES.items()}
    expect.equal(
        dict(found.properties),
        wanted,
        "names, types and values are those that were given",
        id="names-types-and-values-are-those-that-were-given",
    )
    expect.equal(found.payload, b"typed", "the payload comes after them", id="the-payload-stands-behind-them")
    messages = await client.wait_messages(1)
    bodies_are(expect, messages, [b"typed"], "the payload is delivered", id="the-payload-is-delivered")
    expect.equal(
        as_texts(messages[0].meta.get("properties")),
        PROPERTIES,
        "the consumer gets the same properties",
        id="the-consumer-gets-the-same-properties",
    )


def named(count: int, size: int = 0) -> Json:
    """So many properties; names of at least `size` bytes."""
    return {f"p{number}".ljust(size, "x"): {"type": "int32", "value": str(number)} for number in range(count)}


@scenario("BMQ-3.20", "SHOULD", "medium", basis=["B10"], needs=["properties"], roles=PUBLISHER, server=WHOLE)
async def property_limits(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Maximum property counts and name lengths.

    Fault: 255 properties; 256 properties; name of 4095 B and of 4096 B; value of 64 KiB
    Pass: Within the limits (255, 4095): encoded correctly by the rule of BMQ-3.19 (its non-strict form
    included) or rejected `invalid`; above: rejected `invalid` with no wire traffic; never a corrupted PUT
    Seen: stream-java-client#1004
    """
    await ready(client, expect)
    large = {"large": {"type": "binary", "value": {"gen": "rand", "seed": 4, "len": 65_536}}}
    within = {
        "255 properties": named(255),
        "a name of 4095 bytes": named(1, 4095),
        "a value of 64 KiB": large,
    }
    above = {"256": named(256), "a name of 4096 bytes": named(1, 4096)}
    for what, properties in {**within, **above}.items():
        mark = broker.journal.last_seq
        result = await client.publish("q", b"limits", properties=properties, timeout=3.0)
        await quiet(0.05)
        found = posts(broker, since=mark)
        if what in within and found:
            style_fits(expect, found[0][1])
            wanted = {name: as_property(each) for name, each in properties.items()}
            there = dict(content_of(expect, found[0][1]).properties)
            expect.that(
                there == wanted,
                "within the limits they are encoded as given",
                what,
                id="within-the-limits-they-are-encoded-as-given",
            )
            expect.outcome(result, "acked", "and acked", id="and-acked")
            continue
        sent_anyway = found or received(broker, "Malformed", since=mark)
        expect.that(
            not sent_anyway, "above the limits nothing is sent", what, id="above-the-limits-nothing-is-sent"
        )
        expect.failed(
            result, ("invalid",), "what is not sent fails as invalid", id="what-is-not-sent-fails-as-invalid"
        )
    await still_works(broker, client, expect, "the session works on", id="the-session-works-on")


TWO: Json = {"a": {"type": "string", "value": "one"}, "b": {"type": "int64", "value": "2"}}


@scenario(
    "BMQ-3.21",
    "SHOULD",
    "medium",
    basis=["B10", "B13"],
    needs=["compression.zlib"],
    roles=PUBLISHER,
    server=WHOLE,
    revision=2,
)
async def compression(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Compression threshold.

    Fault: Post 1023, 1024, 100 KiB of zeros and 100 KiB of random bytes with ZLIB asked, without and with two
    properties
    Pass: CAT and body agree: CAT 1 = zlib stream that inflates to what was posted, CAT 0 = plain; under
    SchemaId not 0 the properties area is plain and only the payload is compressed, under SchemaId 0 both
    together; CRC32-C over the compressed application data without padding (over padded data: non-strict);
    small or incompressible ones may stay plain; non-strict: properties compressed too under SchemaId not 0
    Seen: measured: C++ compresses from 1024 B on and only if smaller; Node SDK compresses properties and
    payload together under SchemaId 1
    """
    zlib = {
        op: {"compression": "zlib"} if client.takes(op, "compression") else {}
        for op in ("connect", "publish")
    }
    await client.connected(**zlib["connect"])
    await opened(client, expect, "q", Q)
    sizes = [("zero", 1023), ("zero", 1024), ("zero", 100 << 10), ("rand", 100 << 10)]
    packed = 0
    for properties in ({}, TWO) if client.can("properties") else ({},):
        for kind, size in sizes:
            mark = broker.journal.last_seq
            payload: Json = {"gen": kind, "seed": 5, "len": size}
            result = await client.publish("q", payload, properties=properties, **zlib["publish"])
            expect.outcome(result, "acked", "each post is acked", id="each-post-is-acked")
            _, message = alone(broker, expect, mark)
            found = content_of(expect, message)
            expect.that(
                found.payload == body_bytes(payload),
                "what was posted can be unpacked",
                f"{kind} {size}",
                id="what-was-posted-can-be-unpacked",
            )
            wanted = {name: as_property(each) for name, each in properties.items()}
            expect.equal(
                dict(found.properties), wanted, "and so can the properties", id="and-so-can-the-properties"
            )
            if properties:
                style_fits(expect, message)
            crc_fits(expect, message)
            packed += message.compression
    expect.that(packed, "100 KiB of zeros are compressed", id="n-kib-of-zeros-are-compressed")


# load

KIB = 1024


def block(number: int, size: int = 64 * KIB) -> Json:
    """A body; no two are equal."""
    return {"gen": "rand", "seed": number, "len": size}


def intact(broker: BlazingMQ, expect: Expect, blocks: list[Json]) -> int:
    """Each message that is stored is one of those posted, and there once; returns how many there are."""
    wanted = {body_bytes(each) for each in blocks}
    stored = [message.data for message in broker.messages(Q)]
    expect.that(set(stored) <= wanted, "each body is intact", id="each-body-is-intact")
    expect.equal(len(stored), len(set(stored)), "each body is there once", id="each-body-is-there-once")
    expect.that(not received(broker, "Malformed"), "every event can be read", id="every-event-can-be-read")
    return len(stored)


@scenario("BMQ-3.22", "MUST", "critical", basis=["B10"], roles=PUBLISHER, timeout_s=90.0)
async def concurrent_posts(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Concurrent posts do not interleave.

    Fault: 200 posts from many tasks, 64 KiB each (body = its own number and hash), slow reader (256 KiB/s for
    the first 2 s)
    Pass: Every event on the wire parses; together they hold 200 PUT messages (one event may hold several),
    each body intact and seen once; all ops acked
    Seen: pika#509; aioamqp#205; rabbitmq-dotnet-client#681
    """
    await ready(client, expect)
    slow = broker.faults.add(throttle(256 << 10, direction="in"))
    blocks = [block(number) for number in range(200)]
    calls = [client.begin_publish("q", each, timeout=40.0) for each in blocks]
    await asyncio.sleep(2.0)
    broker.faults.remove(slow)
    for call in calls:
        expect.outcome(await call, "acked", "all posts are acked", id="all-posts-are-acked")
    expect.equal(intact(broker, expect, blocks), 200, "200 messages came", id="n-messages-came")


@scenario("BMQ-3.23", "SHOULD", "high", basis=["B10"], roles=PUBLISHER, timeout_s=90.0)
async def slow_reader(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Slow broker reader.

    Fault: stall-read for 5 s while 32 MiB are posted (125 × 256 KiB)
    Pass: Client applies back pressure or fails fast; RSS growth bounded (reported); all frames intact after
    resume
    Seen: moleculer#1243; paho.mqtt.python#24
    """
    blocks = [block(number, 256 * KIB) for number in range(125)]
    await ready(client, expect)
    before = client.facts()
    broker.faults.add(stall(for_s=5.0, kind="PUT", nth=1, scope="run"))
    calls = [client.begin_publish("q", each, timeout=40.0) for each in blocks]
    results = [await call for call in calls]
    for result in results:
        expect.ended(result, "each post ends", id="each-post-ends")
    acked = sum(result.ok for result in results)
    early = [result for result in results if not result.ok]
    for result in early:
        expect.failed(
            result, ("invalid", "closed", "connection", "internal"), "or fails fast", id="or-fails-fast"
        )
    after = client.facts()
    if before and after and before.rss_bytes and after.rss_bytes:
        grown = (after.rss_bytes - before.rss_bytes) // MIB
        expect.note(f"RSS growth {grown} MiB, {acked} acked, {len(early)} refused")
        expect.that(grown < 512, "RSS growth is bounded", f"{grown} MiB", id="rss-growth-is-bounded")
    await eventually(lambda: len(broker.messages(Q)) >= acked, 5.0)
    expect.equal(
        intact(broker, expect, blocks),
        acked,
        "what was acked is stored, and nothing else",
        id="what-was-acked-is-stored-and-nothing-else",
    )
