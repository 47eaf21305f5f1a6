"""NATS-1 Connection: signs of life, limits, and what the server complains of."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from fakebrokers import NATS
from fakebrokers.faults import reply
from fakebrokers.journal import Tap
from scenarios._common import LOSSES, until
from scenarios.nats._steps import BACK_S, CONSUMER, PUBLISHER, bodies_at

MIB = 1 << 20
KIB = 1024


@scenario(
    "NATS-1.01", "MUST", "critical", basis=["S1"], server={"switches": {"ping_interval_s": 0.5}}, timeout_s=60
)
async def answers_pings(broker: NATS, client: Client, expect: Expect) -> None:
    """A quiet client answers PINGs.

    Fault: None; the server asks every 0.5 s, and gives up who has not answered two. Nothing else for 4 s
    Pass: Each PING has a PONG; the connection stays, and no loss is reported
    Seen: nats.py2#48
    """
    await client.connected()
    connections, mark = [one["name"] for one in broker.connections], len(client.events)
    await asyncio.sleep(4.0)
    asked = broker.journal.select(kind="Ping", tap=Tap.SENT)
    expect.exercised(len(asked) > 1, "the server has not asked", id="the-server-has-not-asked")
    expect.equal([one["name"] for one in broker.connections], connections, "the connection stays", id="stays")
    answers = broker.journal.select(kind="Pong", tap=Tap.RECEIVED)
    expect.that(len(answers) >= len(asked) - 1, "each PING has a PONG", len(answers), id="each-has-a-pong")
    losses = [one for one in client.events[mark:] if one.event == "session" and one["what"] in LOSSES]
    expect.that(not losses, "no loss is reported", losses[:1], id="no-loss-is-reported")


@scenario(
    "NATS-1.02",
    "MUST",
    "high",
    basis=["S2"],
    roles=PUBLISHER,
    server={"switches": {"max_payload": 64 * KIB}, "body_limit": MIB},
)
async def payload_limit(broker: NATS, client: Client, expect: Expect) -> None:
    """The limit of the server's INFO counts.

    Fault: None; `max_payload` is 64 KiB instead of 1 MiB
    Pass: A payload of 64 KiB is acked; one more byte fails as `invalid` and is not written; the next publish
    is acked on the same connection
    Seen: nats.net#376; nats.py#888
    """
    await client.connected()
    most = {"gen": "zero", "len": 64 * KIB}
    expect.outcome(await client.publish("jobs", most), "acked", "what fits is acked", id="what-fits-is-acked")
    connections = [one["name"] for one in broker.connections]
    beyond = await client.publish("jobs", {"gen": "zero", "len": 64 * KIB + 1})
    expect.failed(beyond, ("invalid",), "one more byte fails as invalid", id="one-more-byte-is-invalid")
    expect.outcome(
        await client.publish("jobs", b"next"), "acked", "the next is acked", id="the-next-is-acked"
    )
    sizes = [len(body) for body in bodies_at(broker, "jobs")]
    expect.equal(sizes, [64 * KIB, 4], "only what fits is written", id="only-what-fits-is-written")
    after = [one["name"] for one in broker.connections]
    expect.equal(after, connections, "on the same connection", id="on-the-same-connection")


@scenario(
    "NATS-1.03",
    "MUST",
    "critical",
    basis=["S3", "S4"],
    needs=["auto_reconnect"],
    roles=CONSUMER,
    timeout_s=60,
)
async def expired_login(broker: NATS, client: Client, expect: Expect) -> None:
    """A login that expires.

    Fault: The server says `User Authentication Expired` and ends the connection, once; the next login is good
    Pass: Within 30 s the client is connected again, with its subscription; a message is delivered
    Seen: nats.go#499; nats.node#532; nats.deno#450
    """
    await client.connected(auto_reconnect=True)
    await client.subscribed("orders")
    mark = broker.journal.last_seq
    for one in broker.connections:
        broker.say_error(one["name"], "User Authentication Expired")
    back = await until(lambda: broker.journal.select(kind="Sub", tap=Tap.HEARD, since=mark), BACK_S)
    expect.that(back, "connected again, with its subscription", "not in 30 s", id="connected-again")
    await until(lambda: broker.subscriptions, 5.0)
    broker.publish("orders", b"new")
    got = await client.wait_messages(1)
    expect.equal(len(got), 1, "a message is delivered", id="a-message-is-delivered")


@scenario("NATS-1.04", "MUST", "high", basis=["S3"], roles=("publisher", "consumer"))
async def permissions_violation(broker: NATS, client: Client, expect: Expect) -> None:
    """A violation of permissions is no end.

    Fault: The server answers one publish with `Permissions Violation`, and leaves the connection open
    Pass: The application gets an error, or the publish fails; the connection stays open: its subscription
    gets messages, a publish is acked, no loss is reported
    Seen: nats.node#530; nats.deno#265; nats.c#71
    """
    await client.connected()
    await client.subscribed("orders")
    connections, mark = [one["name"] for one in broker.connections], len(client.events)
    broker.faults.add(reply(403, role="publish", nth=1, scope="run", name="not permitted"))
    result = await client.publish("secret", b"no")
    reported = not result.ok or await client.event("error", 2.0, mark)
    expect.that(reported, "the violation is reported", str(result), id="the-violation-is-reported")
    broker.publish("orders", b"tea")
    expect.equal(
        len(await client.wait_messages(1)), 1, "the subscription gets messages", id="messages-still-come"
    )
    expect.outcome(
        await client.publish("jobs", b"yes"), "acked", "a publish is acked", id="a-publish-is-acked"
    )
    after = [one["name"] for one in broker.connections]
    expect.equal(after, connections, "the connection stays open", id="the-connection-stays-open")
    losses = [one for one in client.events[mark:] if one.event == "session" and one["what"] in LOSSES]
    expect.that(not losses, "no loss is reported", losses[:1], id="no-loss-is-reported")
