"""RMQS-5 Connections that have to be made anew, and many of them."""

from __future__ import annotations

import asyncio

from conformance.clients.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import fault, rst
from fakebrokers.faults.effects import Fin, Rewrite
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.codes import Code
from scenarios._common import received, until
from scenarios._footprint import MIB
from scenarios.rabbitmq_stream._deliveries import FIRST, attached
from scenarios.rabbitmq_stream._lifecycle import losses, positions, reconnecting, without_gap
from scenarios.rabbitmq_stream._steps import BOTH, CONSUMER, STREAM


@scenario(
    "RMQS-5.18",
    "SHOULD",
    "high",
    basis=["R14"],
    needs=["auto_reconnect", "endpoints"],
    roles=BOTH,
    server={"nodes": 3},
    timeout_s=120,
    revision=2,
)
async def rolling_restart(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Rolling restart.

    Fault: Three endpoints, restart one after another, every 2 s: MetadataUpdate(6) to users of its leaders,
    FIN without Close, refuse 1 s, leader elsewhere meanwhile
    Pass: Publishing resumes within 30 s after the last restart; each message `acked` or unknown exactly once;
    consumers without gap (repeats allowed after a reconnect)
    Seen: stream-dotnet-client#273; stream-dotnet-client#344; nats.java#1586
    """
    broker.create_stream(STREAM)
    await reconnecting(client, endpoints=[f"{broker.host}:{node.port}" for node in broker.nodes])
    expect.prepared(await client.publish(STREAM, b"first"))
    await client.subscribed(STREAM, STREAM, offset=FIRST)
    calls: list[Call] = []

    async def produce(seconds: float) -> None:
        until = broker.now + seconds
        while broker.now < until:
            calls.append(client.begin_publish(STREAM, b"number %d" % len(calls), timeout=10.0))
            await asyncio.sleep(0.1)

    ended = 0
    for node in (1, 2, 3):
        mark = broker.journal.last_seq
        broker.stop_node(node)
        ended += len(broker.journal.select(kind="closed", since=mark))
        await produce(1.0)
        broker.start_node(node)
        await produce(1.0)
    expect.exercised(
        ended, "no restart ended a connection of the client", id="no-restart-ended-a-connection-of-the-client"
    )
    begun, acked = broker.now, False
    while not acked and broker.now - begun < 30.0:
        acked = (await client.begin_publish(STREAM, b"last", timeout=5.0)).ok
    expect.that(
        acked,
        "publishing resumes within 30 s after the last restart",
        "it did not",
        id="publishing-resumes-within-n-s-after-the-last-restart",
    )
    results = [await call for call in calls]
    stored = [message.body for message in broker.messages(STREAM)]
    for number, result in enumerate(results):
        criterion = f"message {number} ends once, acked or unknown"
        expect.ended(result, criterion, id="message-n-ends-once-acked-or-unknown")
        there = any(body.endswith(b"number %d" % number) for body in stored)
        if result.ok:
            expect.that(
                there,
                f"message {number}, which was acked, is stored",
                "it is not",
                id="message-n-which-was-acked-is-stored",
            )
        elif result.outcome == "nacked":
            expect.that(
                not there, criterion, f"{result}, but it is stored", id="message-n-ends-once-acked-or-unknown"
            )
    twice = [event.fields for event in client.events if event.event == "outcome"]
    expect.that(
        not twice,
        "each message ends once: no outcome besides the answers",
        twice[:1],
        id="each-message-ends-once-no-outcome-besides-the-answers",
    )
    await until(lambda: len(set(positions(client))) >= len(stored), 15.0)
    without_gap(
        expect, positions(client), "the consumer goes on without gap", id="the-consumer-goes-on-without-gap"
    )
    expect.equal(
        len(set(positions(client))),
        len(stored),
        "the consumer gets everything",
        id="the-consumer-gets-everything",
    )


@scenario(
    "RMQS-5.19", "MUST", "high", basis=["R9"], needs=["auto_reconnect.consumer"], roles=CONSUMER, timeout_s=60
)
async def closed_while_reconnecting(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Reconnect of a closed consumer.

    Fault: Close during the reconnect delay
    Pass: No new Subscribe after close ended
    Seen: stream-java-client#846
    """
    broker.create_stream(STREAM)
    for session in ("unsubscribe", "close"):
        mark = broker.journal.last_seq
        await reconnecting(client, session)
        await client.subscribed(STREAM, session, session=session, offset=FIRST)
        await attached(broker, expect, since=mark)
    mark = broker.journal.last_seq
    broker.faults.add(rst(on="accept", name="not yet"))
    expect.may_not_fire("not yet", "a client may wait longer before it tries again")
    broker.kill(how="rst")
    await asyncio.sleep(0.1)
    calls = [client.begin("unsubscribe", 5.0, sub="unsubscribe"), client.begin("close", 5.0, session="close")]
    results = [await call for call in calls]
    for result in results:
        expect.ended(result, f"{result.op} ends", id=slug("{}-ends", result.op))
    ended = broker.journal.last_seq
    early = received(broker, "Subscribe", since=mark)
    expect.exercised(
        not early, "the consumer was connected again already", id="the-consumer-was-connected-again-already"
    )
    broker.faults.clear()
    await asyncio.sleep(5.0)
    again = received(broker, "Subscribe", since=ended)
    expect.that(
        not again,
        "no new Subscribe after the end of close",
        [str(r) for r in again],
        id="no-new-subscribe-after-the-end-of-close",
    )


@scenario("RMQS-5.20", "SHOULD", "medium", basis=["R15"], needs=["auto_reconnect"], timeout_s=60)
async def password_changed(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Rejected after password change.

    Fault: RST; on reconnect SaslAuthenticate code 8 at once, then FIN (3.10 timing; the 3 s of 4.x would hide
    a storm), for 10 s
    Pass: Stops and reports `auth`, or tries at most once per second
    Seen: stream-dotnet-client#363; stream-dotnet-client#140
    """
    await reconnecting(client)
    broker.create_stream(STREAM)
    if client.has_role("consumer"):
        await client.subscribed(STREAM, STREAM, offset=FIRST)
        await attached(broker, expect)
    else:
        expect.prepared(await client.publish(STREAM, b"first"))
    mark, events = broker.journal.last_seq, len(client.events)
    refused = Rewrite(fields={"code": Code.AUTHENTICATION_FAILURE})
    broker.faults.add(fault(refused, Fin(), kind="SaslAuthenticateResponse", name="password changed"))
    broker.kill(how="rst")
    await asyncio.sleep(10.0)
    logins = [r.at for r in received(broker, "SaslAuthenticate", since=mark)]
    expect.exercised(logins, "the client did not connect again", id="the-client-did-not-connect-again")
    expect.that(
        len(logins) <= 12,
        "stops, or at most one try per second",
        f"{len(logins)} in 10 s",
        id="stops-or-at-most-one-try-per-second",
    )
    if len(logins) == 1:
        reported = [e for e in losses(client, events) if "auth" in str(e.fields).lower() or e["code"] == 8]
        expect.tolerate(
            reported, "stops and reports auth", "it stopped without an error", id="stops-and-reports-auth"
        )


@scenario("RMQS-5.21", "SHOULD", "high", basis=["R17"], needs=["stats"], roles=BOTH, timeout_s=120)
async def many_cycles(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """100 connect/close cycles.

    Fault: 10 warm-up cycles, then 100 with one publish and one subscription each
    Pass: fds equal, threads/tasks ± 3, timers ± 3 compared with the end of the warm-up; RSS growth < 32 MiB;
    every server-side connection ended
    Seen: stream-dotnet-client#304; stream-dotnet-client#391; stream-rust-client#292
    """
    broker.create_stream(STREAM)

    async def begin(name: str) -> None:
        await client.connected(name, timeout=20.0)
        expect.prepared(await client.publish(STREAM, b"hello", session=name, timeout=20.0))
        await client.subscribed(STREAM, name, session=name, offset={"type": "next"}, timeout=20.0)

    async def end(name: str) -> None:
        expect.prepared(await client.close(name, timeout=20.0))

    async def round_of_five() -> None:
        names = [f"session {each}" for each in range(5)]
        mark = broker.journal.last_seq
        await asyncio.gather(*map(begin, names))
        await expect.reached(
            broker,
            "a Subscribe did not come",
            kind="SubscribeResponse",
            tap=Tap.SENT,
            since=mark,
            count=5,
            id="a-subscribe-did-not-come",
        )
        await asyncio.sleep(0.1)
        await asyncio.gather(*map(end, names))

    async def figures() -> dict[str, int]:
        await until(lambda: not broker.connections, 5.0)
        await asyncio.sleep(0.5)
        facts = client.facts()
        stats = expect.prepared(await client.op("stats"))
        found = {key: stats.get(key) for key in ("threads", "tasks", "timers")}
        found |= {"fds": facts and facts.fds, "rss": facts and facts.rss_bytes}
        return {key: int(value) for key, value in found.items() if value is not None}

    for _ in range(4):
        await round_of_five()
    before = await figures()
    for _ in range(20):
        await round_of_five()
    after = await figures()
    expect.equal(
        len(broker.connections),
        0,
        "every server-side connection has ended",
        id="every-server-side-connection-has-ended",
    )
    for key in before:
        grown = after.get(key, 0) - before[key]
        if key == "fds":
            expect.that(
                grown <= 0,
                "as many file descriptors as after the warm-up",
                f"{grown} more",
                id="as-many-file-descriptors-as-after-the-warm-up",
            )
        elif key == "rss":
            expect.note(f"RSS grew by {grown / MIB:.1f} MiB")
            expect.that(grown < 32 * MIB, "RSS growth < 32 MiB", f"{grown // MIB} MiB", id="rss-growth-n-mib")
        else:
            expect.that(
                abs(grown) <= 3, f"{key} +-3", f"{before[key]}, then {after.get(key)}", id=slug("{}-n", key)
            )
