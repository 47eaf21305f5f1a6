"""NATS-4 Subscriptions and the end: slow consumers and drain."""

from __future__ import annotations

import asyncio

from conformance.clients.adapter.messages import same_body
from conformance.suite import Client, Expect, scenario
from fakebrokers import NATS
from fakebrokers.faults import latency
from scenarios._common import until
from scenarios.nats._steps import CONSUMER, PUBLISHER, bodies_at, bodies_before_ping

SLOW = {"mode": "event", "sleep_ms": 100}


@scenario("NATS-4.01", "MUST", "critical", basis=["S11"], needs=["callback_sleep"], roles=CONSUMER)
async def drained_subscription(broker: NATS, client: Client, expect: Expect) -> None:
    """A subscription that is drained.

    Fault: 10 messages whose callback takes 100 ms each; the last 5 are still on their way (300 ms) when the
    subscription is drained
    Pass: The drain ends well when all 10 were delivered, in order; the server has no subscription any more; a
    message that comes after it is not delivered
    Seen: vector#23635; nats.c#383; nats.ts#19
    """
    await client.connected()
    await client.subscribed("orders", on_message=SLOW)
    for number in range(5):
        broker.publish("orders", b"%d" % number)
    await client.wait_messages(1)
    broker.faults.add(latency(0.3, direction="out"))
    for number in range(5, 10):
        broker.publish("orders", b"%d" % number)
    result = await client.unsubscribe(drain=True)
    expect.ok(result, "the drain ends well", id="the-drain-ends-well")
    await asyncio.sleep(0.2)
    got = client.messages()
    in_order = len(got) == 10 and all(same_body(one.body, b"%d" % n) for n, one in enumerate(got))
    expect.that(
        in_order, "all 10 were delivered, in order", [one.body for one in got], id="all-were-delivered"
    )
    expect.equal(broker.subscriptions, [], "the server has no subscription", id="no-subscription-is-left")
    broker.publish("orders", b"late")
    await asyncio.sleep(0.5)
    expect.equal(len(client.messages()), 10, "nothing comes after it", id="nothing-comes-after-it")


@scenario(
    "NATS-4.02", "SHOULD", "high", basis=["S12"], needs=["pending_limit", "callback_sleep"], roles=CONSUMER
)
async def slow_consumer(broker: NATS, client: Client, expect: Expect) -> None:
    """A slow consumer.

    Fault: A subscription that may keep 5 messages gets 30 at once, its callback takes 100 ms; another one
    gets 30 too
    Pass: It gets the first ones, at most 7, and the application gets an error; the other subscription gets
    all 30; a message after that reaches both
    Seen: nats.c#328; nats.py#372; nats-pure.rb#75
    """
    await client.connected()
    await client.subscribed("orders", "slow", on_message=SLOW, pending_limit=5)
    await client.subscribed("orders", "quick")
    mark = len(client.events)
    for number in range(30):
        broker.publish("orders", b"%d" % number)
    quick = await client.wait_messages(30, "quick")
    expect.equal(len(quick), 30, "the other one gets all", id="the-other-one-gets-all")
    reported = await client.event("error", 2.0, mark)
    expect.that(reported, "the application gets an error", "no error event", id="an-error-is-reported")
    await asyncio.sleep(1.0)
    kept = len(client.messages("slow"))
    expect.that(1 <= kept <= 7, "it gets the first ones", kept, id="it-gets-the-first-ones")
    broker.publish("orders", b"next")
    await client.wait_messages(kept + 1, "slow")
    last = client.messages("slow")[-1]
    expect.that(same_body(last.body, b"next"), "a later message comes", last.body, id="a-later-message-comes")


@scenario(
    "NATS-4.03",
    "MUST",
    "critical",
    basis=["S11"],
    needs=["callback_sleep"],
    roles=(*PUBLISHER, *CONSUMER),
    ops=("nats.drain",),
)
async def drained_connection(broker: NATS, client: Client, expect: Expect) -> None:
    """A connection that is drained.

    Fault: 5 messages wait for a callback of 100 ms each, 50 publishes wait for nothing; then the connection
    is drained
    Pass: The drain ends well; all 5 were delivered, all 50 are at the server, once and in order; the
    connection is closed, and stays so
    Seen: nats.net.v1#271; interactEM#276
    """
    await client.connected()
    await client.subscribed("orders", on_message=SLOW)
    for number in range(5):
        broker.publish("orders", b"%d" % number)
    await client.wait_messages(1)
    sent = [client.begin_publish("jobs", b"%d" % number, wait=False) for number in range(50)]
    for call in sent:
        expect.prepared(await call)
    expect.ok(
        await client.op("nats.drain", 8.0, session="s1"), "the drain ends well", id="the-drain-ends-well"
    )
    expect.equal(len(client.messages()), 5, "all 5 were delivered", id="all-were-delivered")
    wanted = [b"%d" % number for number in range(50)]
    expect.equal(bodies_at(broker, "jobs"), wanted, "all 50 are at the server", id="all-are-at-the-server")
    gone = await until(lambda: not broker.connections, 2.0)
    expect.that(gone, "the connection is closed", broker.connections, id="the-connection-is-closed")
    await asyncio.sleep(2.0)
    expect.equal(broker.connections, [], "and stays so", id="it-stays-closed")


@scenario(
    "NATS-4.04", "MUST", "critical", basis=["S6"], needs=["max_messages", "callback_sleep"], roles=CONSUMER
)
async def limit_and_slow_callback(broker: NATS, client: Client, expect: Expect) -> None:
    """A limit of messages, and a callback that takes its time.

    Fault: A subscription for 5 messages gets 7 at once; its callback takes 100 ms
    Pass: The application gets the first 5, in order
    Seen: nats.go#114
    """
    await client.connected()
    await client.subscribed("orders", on_message=SLOW, max=5)
    for number in range(7):
        broker.publish("orders", b"%d" % number)
    await client.wait_messages(5)
    await asyncio.sleep(0.5)
    got = client.messages()
    in_order = len(got) == 5 and all(same_body(one.body, b"%d" % n) for n, one in enumerate(got))
    expect.that(in_order, "the first 5, in order", [one.body for one in got], id="the-first-n-in-order")


@scenario("NATS-4.05", "MUST", "critical", basis=["S8"], roles=PUBLISHER)
async def flush_after_publish(broker: NATS, client: Client, expect: Expect) -> None:
    """A flush waits for what was published before it.

    Fault: None; five times a publish that is acked when it was flushed
    Pass: Whenever one is acked, the server has got it before the PING that was answered
    """
    await client.connected()
    for number in range(5):
        mark, body = broker.journal.last_seq, b"%d" % number
        expect.outcome(
            await client.publish("jobs", body), "acked", "a publish is acked", id="a-publish-is-acked"
        )
        before = bodies_before_ping(broker, "jobs", mark)
        expect.that(body in before, "it came before its PING", before, id="it-came-before-its-ping")
