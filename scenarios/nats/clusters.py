"""NATS-2 Reconnects and clusters: what is there again, and where."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from fakebrokers import NATS
from fakebrokers.faults import drop, hold
from fakebrokers.journal import Tap
from fakebrokers.nats.frames import Unsub
from scenarios._common import until
from scenarios.nats._steps import BACK_S, CONSUMER, PUBLISHER, listens_again, lost


@scenario(
    "NATS-2.01",
    "MUST",
    "critical",
    basis=["S4", "S5"],
    needs=["auto_reconnect", "queue_groups"],
    roles=CONSUMER,
    timeout_s=60,
)
async def queue_group_after_a_loss(broker: NATS, client: Client, expect: Expect) -> None:
    """A queue group after a reconnect.

    Fault: Two members of a queue group in one session; rst; then 10 messages
    Pass: Both subscriptions are made again in their group; each message is delivered once
    Seen: nats.go#20; nats.rb#39; nats.php#141
    """
    await client.connected(auto_reconnect=True)
    for sub in ("a", "b"):
        await client.subscribed("orders", sub, queue="workers")
    await lost(broker, expect)
    await until(lambda: len(broker.subscriptions) >= 2, BACK_S)
    expect.equal(
        [one for one in broker.subscriptions if one[0] == "orders"],
        [("orders", "workers")] * 2,
        "both are made again in their group",
        id="both-are-made-again-in-their-group",
    )
    for number in range(10):
        broker.publish("orders", b"%d" % number)

    def count() -> int:
        return len(client.messages("a")) + len(client.messages("b"))

    await until(lambda: count() >= 10, 5.0)
    expect.equal(count(), 10, "each message is delivered once", id="each-message-is-delivered-once")


@scenario(
    "NATS-2.02",
    "SHOULD",
    "medium",
    basis=["S4", "S6"],
    needs=["auto_reconnect", "max_messages"],
    roles=CONSUMER,
    timeout_s=60,
)
async def limit_after_a_loss(broker: NATS, client: Client, expect: Expect) -> None:
    """A limit of messages after a reconnect.

    Fault: A subscription for 5 messages gets 2; rst; then 6 more
    Pass: The application gets 5 and no more; after the reconnect the server is asked for the 3 that are left,
    so that it sends no others
    Seen: nats.py#142; nats.go#152; nats.node#321; nats.rs#1560
    """
    await client.connected(auto_reconnect=True)
    await client.subscribed("orders", max=5)
    for number in range(2):
        broker.publish("orders", b"%d" % number)
    expect.exercised(len(await client.wait_messages(2)) == 2, "the first did not come", id="the-first-came")
    mark = broker.journal.last_seq
    await lost(broker, expect)
    await listens_again(broker, expect, "orders")

    def limits() -> list[int | None]:
        found = broker.journal.select(kind="Unsub", tap=Tap.HEARD, since=mark)
        return [one.frame.limit for one in found if isinstance(one.frame, Unsub)]

    await until(limits, 2.0)
    for number in range(6):
        broker.publish("orders", b"%d" % (2 + number))
    await client.wait_messages(6, within_s=2.0)
    expect.equal(len(client.messages()), 5, "the application gets 5", id="the-application-gets-n")
    expect.equal(
        limits()[:1], [3], "the server is asked for the 3 that are left", id="asked-for-what-is-left"
    )


@scenario(
    "NATS-2.03",
    "SHOULD",
    "high",
    basis=["S4", "S7"],
    needs=["auto_reconnect"],
    roles=CONSUMER,
    server={"nodes": 2},
    timeout_s=75,
)
async def lame_duck(broker: NATS, client: Client, expect: Expect) -> None:
    """Lame duck mode of the only server that the client was given.

    Fault: A cluster of two, of which the application names the first; that one says `ldm` and ends its
    connections 10 s later
    Pass: Within 30 s of that the client is connected to the second one, of which only INFO has said; its
    subscription gets messages
    Seen: nats.py#868; nats.go#572
    """
    await client.connected(auto_reconnect=True)
    await client.subscribed("orders")

    def nodes() -> list[int]:
        return [broker.node_of(one["name"]) for one in broker.connections]

    expect.exercised(nodes() == [1], "the client is not at the first", id="not-at-the-first")
    broker.lame_duck(1)
    there = await until(lambda: nodes() == [2] and bool(broker.subscriptions), 10.0 + BACK_S)
    expect.that(there, "connected to the second one", nodes(), id="connected-to-the-second")
    broker.publish("orders", b"tea")
    got = await client.wait_messages(1)
    expect.equal(len(got), 1, "its subscription gets messages", id="its-subscription-gets-messages")


@scenario(
    "NATS-2.04",
    "MUST",
    "high",
    basis=["S4", "S8"],
    needs=["auto_reconnect"],
    roles=PUBLISHER,
    ops=("flush",),
    timeout_s=75,
)
async def flush_over_a_loss(broker: NATS, client: Client, expect: Expect) -> None:
    """A flush over a reconnect.

    Fault: PONGs are dropped, three flushes wait; rst; then all is well
    Pass: Each of the three ends by its deadline, and as a failure: no PONG of the new connection is theirs.
    Then a publish is acked, and a flush works
    Seen: nats.py2#36; nats.rs#29; nats.go#327
    """
    await client.connected(auto_reconnect=True)
    broker.faults.add(drop(kind="Pong", direction="out", name="no pongs"))
    mark = broker.journal.last_seq
    calls = [client.begin("flush", 4.0, session="s1") for _ in range(3)]
    await expect.reached(broker, "no PING came", kind="Ping", tap=Tap.RECEIVED, since=mark, id="no-ping-came")
    await until(lambda: len(broker.journal.select(kind="Ping", tap=Tap.RECEIVED, since=mark)) >= 3, 1.0)
    broker.kill(how="rst")
    broker.faults.clear()
    for call in calls:
        result = await call
        expect.ended(result, "each flush ends by its deadline", id="each-flush-ends-by-its-deadline")
        expect.that(not result.ok, "as a failure", str(result), id="as-a-failure")

    async def works() -> bool:
        return (await client.publish("jobs", b"again", timeout=3.0)).ok

    for _ in range(10):
        if await works():
            break
    else:
        expect.that(False, "then a publish is acked", "not in 30 s", id="then-a-publish-is-acked")
    expect.ok(await client.op("flush", session="s1"), "a flush works", id="a-flush-works")


@scenario(
    "NATS-2.05",
    "MUST",
    "critical",
    basis=["S8"],
    roles=("publisher", "consumer"),
    ops=("flush",),
    timeout_s=60,
)
async def late_pong(broker: NATS, client: Client, expect: Expect) -> None:
    """A PONG after the time-out of its flush.

    Fault: The answer to a flush with 1 s comes 1 s later than that
    Pass: The flush ends as `timeout`. After its PONG all goes on as before: a message is delivered, a publish
    is acked, without a loss of the connection
    Seen: nats.py2#36; nats.go#327
    """
    await client.connected()
    await client.subscribed("orders")
    connections = [one["name"] for one in broker.connections]
    broker.faults.add(hold(kind="Pong", direction="out", name="late"))
    late = await client.op("flush", 1.0, session="s1")
    expect.failed(late, ("timeout",), "the flush ends as timeout", id="the-flush-ends-as-timeout")
    await asyncio.sleep(1.0)
    broker.faults.remove("late")
    await asyncio.sleep(0.3)
    broker.publish("orders", b"tea")
    expect.equal(len(await client.wait_messages(1)), 1, "a message is delivered", id="a-message-is-delivered")
    result = await client.publish("jobs", b"yes")
    expect.outcome(result, "acked", "a publish is acked", id="a-publish-is-acked")
    after = [one["name"] for one in broker.connections]
    expect.equal(after, connections, "without a loss", id="without-a-loss")
