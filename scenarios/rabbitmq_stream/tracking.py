"""RMQS-4 Consuming: which offsets a library stores by itself, and which not."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop
from fakebrokers.rabbitmq_stream.frames import StoreOffset
from scenarios._common import received, until
from scenarios.rabbitmq_stream._deliveries import FIRST, attached, delivered_messages, numbered, write
from scenarios.rabbitmq_stream._steps import CONSUMER, STREAM

NEEDS = ["tracking"]
BUSY_MS = 3000
CHECKS_S = 2.5  #: libraries look each second whether there is something to store
LIMIT_S = 12.0


def _stored(broker: RabbitMQStream, name: str = "app") -> list[int]:
    """The offsets that the client has stored for a consumer, in their order."""
    frames = [found.frame for found in received(broker, "StoreOffset")]
    return [frame.offset for frame in frames if isinstance(frame, StoreOffset) and frame.reference == name]


def _by_library(every: int) -> dict[str, Any]:
    return {"offset": FIRST, "name": "app", "tracking": {"by": "library", "every": every}}


@scenario("RMQS-4.37", "SHOULD", "high", basis=["R12"], needs=NEEDS, roles=CONSUMER)
async def tracking_by_the_library(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Tracking by the library.

    Fault: A consumer whose offset the library stores after each five messages gets 12, in chunks of 4, and is
    ended
    Pass: After the 12 an offset from 4 to 11 is stored; with the end of the subscription 11 is stored; none
    goes back
    """
    broker.create_stream(STREAM)
    await client.connected()
    await client.subscribed(STREAM, **_by_library(5))
    for first in (0, 4, 8):
        write(broker, client, numbered(first, 4))
    got = await delivered_messages(client, 12)
    expect.exercised(len(got) == 12, "not everything was delivered", id="not-everything-was-delivered")
    await until(lambda: _stored(broker), 5.0)
    found = _stored(broker)
    is_due = bool(found) and 4 <= found[-1] <= 11
    expect.that(
        is_due, "an offset from 4 to 11 is stored", found, id="an-offset-of-what-was-handled-is-stored"
    )
    expect.prepared(await client.unsubscribe(timeout=LIMIT_S))
    await until(lambda: 11 in _stored(broker), 2.0)
    found = _stored(broker)
    expect.equal(found[-1:], [11], "with the end 11 is stored", id="with-the-end-the-last-one-is-stored")
    expect.equal(found, sorted(found), "no offset goes back", id="no-offset-goes-back")


@scenario("RMQS-4.38", "SHOULD", "critical", basis=["R12"], needs=NEEDS, roles=CONSUMER)
async def offset_of_a_running_callback(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """End of a tracked subscription while a callback runs.

    Fault: The library stores offsets after each message; the subscription is ended while the callback of the
    third message runs
    Pass: While it runs the offset of that message is not stored: whether it will be processed nobody knows,
    and who begins after it never gets it
    Seen: source: rabbitmq-stream-go-client 1.8.3 sets the offset to store before it calls the handler
    """
    broker.create_stream(STREAM)
    await client.connected()
    busy = {"mode": "event", "sleep_ms": BUSY_MS, "sleep_on": [3]}
    await client.subscribed(STREAM, on_message=busy, **_by_library(1))
    write(broker, client, numbered(0, 4))
    got = await client.wait_messages(3)
    expect.exercised(len(got) == 3, "the third message did not come", id="the-third-message-did-not-come")
    ending = client.begin("unsubscribe", LIMIT_S, sub="c1")
    await asyncio.sleep(BUSY_MS / 1000 / 3)
    found = _stored(broker)
    ahead = [offset for offset in found if offset > 1]
    over = any(event.event == "returned" for event in client.events)
    expect.exercised(not (ahead and over), "the callback ended too early", id="the-callback-ended-too-early")
    criterion = "the offset of a message is not stored while its callback runs"
    expect.that(not ahead, criterion, ahead, id="no-offset-of-a-running-callback-is-stored")
    await ending


@scenario("RMQS-4.39", "SHOULD", "critical", basis=["R12"], needs=NEEDS, roles=CONSUMER, timeout_s=60)
async def nothing_handled(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Nothing handled, nothing stored.

    Fault: A consumer that begins at 5 gets nothing and is ended: once the library stores its offsets, once
    the application does, which stores none
    Pass: No offset is stored: who begins after a stored one skips a message that nobody has had, and has lost
    the start that was given
    Seen: source: stream-java-client 1.11.0 stores 0 for a consumer with manual tracking that has stored none;
    rabbitmq-stream-go-client 1.8.3 stores the offset that it was told to begin at
    """
    broker.create_stream(STREAM)
    write(broker, client, numbered(0, 10))
    broker.faults.add(drop(kind="Deliver", name="no message"))
    for by in ("library", "application"):
        mark = broker.journal.last_seq
        await client.connected(by)
        start = {"type": "offset", "value": 5}
        await client.subscribed(STREAM, by, session=by, offset=start, name=by, tracking={"by": by})
        await attached(broker, expect, since=mark)
        await asyncio.sleep(CHECKS_S)
        expect.prepared(await client.unsubscribe(by, timeout=LIMIT_S))
        expect.prepared(await client.close(by, timeout=LIMIT_S))
        found = _stored(broker, by)
        criterion = f"tracking by the {by}: no offset is stored"
        expect.equal(found, [], criterion, id=slug("tracking-by-the-{}-no-offset-is-stored", by))


@scenario(
    "RMQS-4.40", "MUST", "high", basis=["R12"], roles=CONSUMER, ops=("rmqs.store_offset",), timeout_s=60
)
async def offset_zero(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Offset 0 is an offset.

    Fault: A consumer gets 0 to 4; the application stores 0
    Pass: StoreOffset has 0
    Seen: source: rabbitmq-stream-js-client 1.0.0 takes 0 for no offset, and stores that of the last message
    """
    broker.create_stream(STREAM)
    write(broker, client, numbered(0, 5))
    await client.connected()
    await client.subscribed(STREAM, offset=FIRST, name="app")
    got = await delivered_messages(client, 5)
    expect.exercised(len(got) == 5, "not everything was delivered", id="not-everything-was-delivered")
    await client.prepare("rmqs.store_offset", session="s1", target=STREAM, name="app", offset=0)
    await until(lambda: _stored(broker), 2.0)
    expect.equal(_stored(broker), [0], "the offset 0 is stored", id="the-offset-zero-is-stored")
