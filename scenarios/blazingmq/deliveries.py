"""BMQ-4 Consume and confirm: compression, padding and properties of deliveries."""

from __future__ import annotations

import zlib
from typing import Any

from conformance.clients.adapter.messages import body_bytes
from conformance.suite import Client, Expect, scenario
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import Compression, PushFlag
from fakebrokers.blazingmq.frames import Push
from fakebrokers.blazingmq.properties import Content, Property, PropertyType, Style, write_content
from scenarios.blazingmq._steps import (
    CONSUMER,
    READ,
    as_texts,
    bodies_are,
    confirms,
    encoded,
    guid,
    knows_new_properties,
    push,
    push_message,
    quiet,
    ready,
    reported,
    say,
    say_raw,
    survives,
)
from scenarios.blazingmq.consuming import then_a_normal_one

Json = dict[str, Any]
BODY = b"compressible " * 200
ZLIB: Json = {"compression": int(Compression.ZLIB)}
#: Not in the order of the alphabet.
PROPERTIES = {
    "zone": Property(PropertyType.STRING, "grün"),
    "count": Property(PropertyType.INT64, -(2**63)),
    "blob": Property(PropertyType.BINARY, b"\0\1\xff"),
}
SHOWN: Json = {
    "zone": {"type": "string", "value": "grün"},
    "count": {"type": "int64", "value": str(-(2**63))},
    "blob": {"type": "binary", "value": {"b64": "AAH/"}},
}


def fields(style: Style, schema_id: int) -> Json:
    """What the header of a delivery with properties says."""
    assert (schema_id == 0) == (style is Style.OLD)
    return {"flags": int(PushFlag.MESSAGE_PROPERTIES), "schema_id": schema_id}


async def one_more(
    client: Client, expect: Expect, count: int, payload: bytes, properties: Json | None = None
) -> None:
    """The next message has this payload and these properties."""
    messages = await client.wait_messages(count)
    bodies_are(
        expect,
        messages[count - 1 :],
        [payload],
        "the payload is delivered as it was posted",
        id="the-payload-is-delivered-as-it-was-posted",
    )
    if properties is not None:
        expect.equal(
            as_texts(messages[-1].meta.get("properties")),
            properties,
            "and so are its properties",
            id="and-so-are-its-properties",
        )


@scenario("BMQ-4.08", "MUST", "high", basis=["B13"], needs=["compression.zlib"], roles=CONSUMER)
async def compressed(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """ZLIB PUSH.

    Fault: CAT 1 with two properties, (a) SchemaId 0: properties and payload in one zlib stream; (b) SchemaId
    1, only to clients that advertised MPS:MESSAGE_PROPERTIES_EX: plain properties in offset form, then the
    zlib stream of the payload; (c) no properties
    Pass: Payload and properties equal in all three; clients without `properties` run only (c)
    Seen: measured: C++ and Java use form (b) with a current broker
    """
    await ready(client, expect, READ)
    push(broker, expect, zlib.compress(BODY), first=1, **ZLIB)
    await one_more(client, expect, 1, BODY)
    if not client.can("properties"):
        return
    content = Content(BODY, PROPERTIES)
    data = write_content(content, Style.OLD, Compression.ZLIB)
    push(broker, expect, data, first=2, **fields(Style.OLD, 0), **ZLIB)
    await one_more(client, expect, 2, BODY, SHOWN)
    if knows_new_properties(broker, expect):
        data = write_content(content, Style.NEW, Compression.ZLIB)
        push(broker, expect, data, first=3, **fields(Style.NEW, 1), **ZLIB)
        await one_more(client, expect, 3, BODY, SHOWN)


@scenario("BMQ-4.09", "MUST", "high", basis=["B19"], needs=["compression.zlib"], roles=CONSUMER)
async def corrupt_zlib(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Corrupt ZLIB body.

    Fault: Broken zlib stream in message 2 of 3: (a) three events, (b) one event
    Pass: No crash; 2 is never delivered nor confirmed; (a) 1 and 3 are delivered; (b) 1 is delivered, 3 may
    be lost with the rest of the event; an error event reports it; the connection survives or is closed
    cleanly and re-established; non-strict: only a log line, or 1 lost in (b)
    Seen: stream-java-client#953; measured: wheel 1.2.2 delivers 1 and 3 in (a), only 1 in (b), no error event
    """
    await ready(client, expect, READ)
    good = zlib.compress(BODY)
    broken = good[:10] + bytes(20) + good[30:]

    def batch(first: int) -> list[Push]:
        made = [
            push_message(broker, expect, data, first + n, **ZLIB)
            for n, data in enumerate((good, broken, good))
        ]
        return [Push((each,)) for each in made]

    say(broker, expect, *batch(1))
    await client.wait_messages(2)
    await quiet()
    await survives(client, expect)
    bodies_are(
        expect,
        client.messages(),
        [BODY, BODY],
        "in events of their own the others are delivered",
        id="in-events-of-their-own-the-others-are-delivered",
    )
    events = batch(11)
    say(broker, expect, Push(tuple(each.messages[0] for each in events)))
    await client.wait_messages(4, within_s=0.7)
    await survives(client, expect)
    positions = [m.position for m in client.messages()[2:]]
    wanted = [guid(11).hex().upper(), guid(13).hex().upper()]
    expect.that(
        set(positions) <= set(wanted),
        "in one event the broken one is not delivered",
        positions,
        id="in-one-event-the-broken-one-is-not-delivered",
    )
    expect.tolerate(
        wanted[0] in positions, "what comes before it is", positions, id="what-stands-before-it-is"
    )
    broken_ids = (guid(2), guid(12))
    expect.that(
        not [c for c in confirms(broker) if c.guid in broken_ids],
        "it is never confirmed",
        id="it-is-never-confirmed",
    )
    expect.tolerate(reported(client), "an error event reports it", id="an-error-event-tells-it")
    await then_a_normal_one(broker, client, expect, (BODY,))


@scenario("BMQ-4.10", "SHOULD", "high", basis=["B13", "B19"], roles=CONSUMER)
async def unknown_compression(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Unknown compression type.

    Fault: Event with one message CAT=5, then an event with a plain message
    Pass: The first is not delivered as plain bytes and not confirmed; the second is delivered; error event;
    non-strict: only a log line, or the connection is dropped and re-established
    Seen: measured: wheel 1.2.2 drops the event with a log line
    """
    await ready(client, expect, READ)
    push(broker, expect, b"packed somehow", compression=5)
    await quiet(0.2)
    await then_a_normal_one(broker, client, expect)
    expect.that(
        not [c for c in confirms(broker) if c.guid == guid(1)],
        "it is not confirmed",
        id="it-is-not-confirmed",
    )
    expect.tolerate(reported(client), "an error event reports it", id="an-error-event-tells-it")


@scenario("BMQ-4.11", "SHOULD", "medium", basis=["B19"], roles=CONSUMER)
async def bad_padding(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Bad padding byte.

    Fault: Last byte 0x00 and 0x09
    Pass: Error event or tolerant handling without over-read; no crash
    Seen: blazingmq 44da504ad
    """
    await ready(client, expect, READ)
    data = b"padded"
    for number, last in enumerate((0x00, 0x09), 1):
        event = encoded(Push((push_message(broker, expect, data, number),)))
        say_raw(broker, expect, event[:-1] + bytes([last]))
        await quiet(0.2)
        await survives(client, expect)
    for message in client.messages():
        shown = body_bytes(message.body)
        expect.that(
            len(shown) <= len(data) + 2,
            "nothing is read beyond the message",
            shown,
            id="nothing-is-read-beyond-the-message",
        )
        expect.that(shown[:4] == data[:4] or not shown, "nor anything else", shown, id="nor-anything-else")
    delivered = tuple(body_bytes(m.body) for m in client.messages())
    await then_a_normal_one(broker, client, expect, delivered)


@scenario("BMQ-4.18", "MUST", "high", basis=["B13"], needs=["properties"], roles=CONSUMER)
async def properties_of_others(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Properties written by another producer.

    Fault: PUSH with three properties (STRING, INT64, BINARY) in (a) old style: SchemaId 0, value lengths; (b)
    only to clients that advertised MPS:MESSAGE_PROPERTIES_EX: SchemaId 1 and then 7, offsets of the names;
    names not in alphabetical order
    Pass: Names, types and values equal in both forms; payload starts after the padded area
    Seen: Node SDK 1.4.0 reads offsets as lengths (source): wrong values for all C++ and Java producers
    """
    await ready(client, expect, READ)
    styles = [(Style.OLD, 0)]
    if knows_new_properties(broker, expect):
        styles += [(Style.NEW, 1), (Style.NEW, 7)]
    for number, (style, schema_id) in enumerate(styles, 1):
        payload = b"payload %d" % number
        data = write_content(Content(payload, PROPERTIES), style, Compression.NONE)
        push(broker, expect, data, first=number, **fields(style, schema_id))
        await one_more(client, expect, number, payload, SHOWN)
    await survives(client, expect, "the client works on", id="the-client-works-on")
