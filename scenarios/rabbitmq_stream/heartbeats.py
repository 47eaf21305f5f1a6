"""RMQS-5 Connection life cycle: heartbeats, and what they find."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop
from scenarios._common import limit_s, received, sent, until
from scenarios.rabbitmq_stream._confirming import confirmed
from scenarios.rabbitmq_stream._deliveries import FIRST, attached, write
from scenarios.rabbitmq_stream._lifecycle import (
    BEAT,
    at_work,
    clock,
    fall_silent,
    judge_gaps,
    lasting,
    let_go,
    losses,
    periods,
    positions,
    reconnecting,
    standing,
    used_again,
)
from scenarios.rabbitmq_stream._steps import CONSUMER, PUBLISHER, STREAM, answered, heartbeat_of


@scenario("RMQS-5.01", "MUST", "critical", basis=["R16", "R18"], server=BEAT, timeout_s=60, revision=3)
async def client_sends_heartbeats(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Client sends heartbeats.

    Fault: Server offers 1 s; T = value of the client's Tune answer; idle 6 T (judged if 1 ≤ T ≤ 5); like the
    real server, close with FIN after two checks of T without a byte
    Pass: gaps between the client's bytes ≤ 1.5 T + 250 ms (non-strict up to 2 T); no FIN by the rule; T = 0
    or > 5: `inconclusive`
    Seen: dart_amqp#106; stream-go-client#361
    """
    await client.connected()
    await lasting(broker, client, expect)
    tuned = periods(broker, expect)
    begin, mark = clock(broker), broker.journal.last_seq
    await asyncio.sleep(6 * max(tuned.values()))
    closed = {record.connection for record in received(broker, "Close")}
    ends = broker.journal.select(kind="fin", since=mark)
    dropped = [str(record) for record in ends if record.connection not in closed]
    expect.that(
        not dropped,
        "no FIN by the rule of two checks without a byte",
        dropped,
        id="no-fin-by-the-rule-of-two-checks-without-a-byte",
    )
    judge_gaps(broker, expect, tuned, begin, clock(broker))


@scenario("RMQS-5.02", "SHOULD", "critical", basis=["R18"], server=BEAT, timeout_s=60)
async def server_heartbeats_missing(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Server heartbeats missing.

    Fault: Server offers 1 s, then sends nothing but keeps reading; T as in RMQS-5.01
    Pass: Client closes or reports loss within 8 T
    Seen: rstream#201 (measured: rstream 1.1.1 still open after 7 s, P-26); rabbitmq-stream-js-client 1.0.0
    likewise (P-29)
    """
    await client.connected()
    await at_work(broker, client, expect)
    names, events = list(standing(broker)), len(client.events)
    limit = 8 * await fall_silent(broker, expect) + 0.25
    noticed = await until(lambda: losses(client, events) or let_go(broker, names), limit)
    expect.that(
        noticed,
        "the client closes or reports loss within 8 T",
        f"nothing in {limit} s",
        id="the-client-closes-or-reports-loss-within-n-t",
    )


@scenario(
    "RMQS-5.03",
    "SHOULD",
    "critical",
    basis=["R18"],
    needs=["auto_reconnect"],
    server=BEAT,
    timeout_s=90,
    revision=2,
)
async def loss_by_heartbeat(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Loss by heartbeat is an unexpected close.

    Fault: As RMQS-5.02; a new connection is accepted
    Pass: within 8 T + 5 s: a new connection with full handshake and Subscribe/DeclarePublisher (the latter
    perhaps with the next message only), or an error/`connection_lost` event and `state.open` false; next
    publish not confirmed silently nor left hanging
    Seen: stream-dotnet-client#393; stream-dotnet-client#394; rabbitmq-java-client#97
    """
    await reconnecting(client)
    await at_work(broker, client, expect)
    mark, events = broker.journal.last_seq, len(client.events)
    limit = 8 * await fall_silent(broker, expect) + 5.0
    done = await until(lambda: used_again(broker, client, mark), limit)
    if not done and client.has_role("publisher") and client.reconnects("producer"):
        result = await client.publish(STREAM, b"first of the new one", timeout=10.0)
        done = result.ok and used_again(broker, client, mark)  # some declare with the next message only
    if not done:
        reported = losses(client, events) and not (await client.state())["open"]
        expect.that(
            reported,
            "within 8 T + 5 s a new connection, handshake and Subscribe or DeclarePublisher, "
            "or a loss event with state.open false",
            f"nothing in {limit} s",
            id="within-n-t-n-s-a-new-connection-handshake-and-subscribe-or",
        )
    if client.has_role("publisher"):
        confirms = len(sent(broker, "PublishConfirm"))
        result = await client.publish(STREAM, b"next")
        expect.ended(
            result, "the next publish is not left hanging", id="the-next-publish-is-not-left-hanging"
        )
        if result.ok:
            came = len(sent(broker, "PublishConfirm"))
            expect.that(
                came > confirms,
                "the next publish is not confirmed by itself",
                "no confirm was sent",
                id="the-next-publish-is-not-confirmed-by-itself",
            )


@scenario("RMQS-5.04", "MUST", "high", basis=["R18"], roles=CONSUMER, server=BEAT, timeout_s=60)
async def any_frame_is_liveness(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Any frame is liveness.

    Fault: T = 1 s; a chunk every 300 ms for 8 s and never a Heartbeat (what the real server does while it has
    something to send)
    Pass: No close, no loss event, all chunks delivered
    Seen: rstream#203; rstream#208
    """
    broker.create_stream(STREAM)
    await client.connected(heartbeat_s=heartbeat_of(client, 1))
    await client.subscribed(STREAM, STREAM, offset=FIRST)
    name = (await attached(broker, expect)).connection
    tuned = periods(broker, expect)
    expect.exercised(
        name in tuned,
        "the consumer's connection has no short heartbeat",
        id="the-consumer-s-connection-has-no-short-heartbeat",
    )
    broker.faults.add(drop(kind="Heartbeat", direction="out", connection=name, name="no heartbeats"))
    expect.may_not_fire("no heartbeats", "a broker that delivers may send none")
    events, count = len(client.events), 27 * tuned[name]  # for 8 T
    for number in range(count):
        write(broker, client, [b"message %d" % number])
        await asyncio.sleep(0.3)
        expect.that(
            name in standing(broker),
            "the connection is not closed",
            f"after {0.3 * number:.1f} s",
            id="the-connection-is-not-closed",
        )
    expect.that(not losses(client, events), "no loss event", losses(client, events)[:1], id="no-loss-event")
    await client.wait_messages(count, STREAM)
    expect.equal(
        positions(client), list(range(count)), "all chunks are delivered", id="all-chunks-are-surfaced"
    )


@scenario(
    "RMQS-5.05",
    "MUST",
    "critical",
    basis=["R18"],
    needs=["callback_sleep"],
    roles=CONSUMER,
    server=BEAT,
    timeout_s=90,
    revision=2,
)
async def heartbeat_while_busy(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Heartbeat while the callback blocks.

    Fault: T = 1 s; callback waits 4 T in the library's own manner (await in async libraries, sleep on the
    callback thread in threaded ones; not `block` on a single event loop)
    Pass: gaps between the client's bytes ≤ 1.5 T + 250 ms (non-strict up to 2 T); the connection survives;
    the following message is delivered
    Seen: stream-dotnet-client#250; pika#93; stream-java-client#1005
    """
    broker.create_stream(STREAM)
    own = heartbeat_of(client, 1)
    await client.connected(heartbeat_s=own)
    busy_s = 4.0 * own
    busy = {"mode": "event", "sleep_ms": 1000 * busy_s}
    await client.subscribed(STREAM, STREAM, offset=FIRST, on_message=busy)
    name = (await attached(broker, expect)).connection
    tuned = periods(broker, expect)
    expect.exercised(
        name in tuned,
        "the consumer's connection has no short heartbeat",
        id="the-consumer-s-connection-has-no-short-heartbeat",
    )
    expect.exercised(
        4 * tuned[name] <= busy_s,
        f"T = {tuned[name]} s, though {own} s were asked for",
        id=slug("t-{}-s-though-{}-s-were-asked-for", tuned[name], own),
    )
    write(broker, client, [b"slow"])
    expect.exercised(
        await client.wait_messages(1, STREAM),
        "the callback was never called",
        id="the-callback-was-never-called",
    )
    begin = clock(broker)
    write(broker, client, [b"following"])
    await asyncio.sleep(busy_s)
    expect.that(name in standing(broker), "the connection survives", "it ended", id="the-connection-survives")
    judge_gaps(broker, expect, tuned, begin, clock(broker))
    messages = await client.wait_messages(2, STREAM)
    expect.equal(
        len(messages), 2, "the following message is delivered", id="the-following-message-is-surfaced"
    )


def _pending_request(client: Client) -> tuple[str, dict[str, Any], str] | None:
    """An op that asks the server something, its arguments, and the kind of the request."""
    choices = (
        ("rmqs.query_offset", {"target": STREAM, "name": "a"}, "QueryOffset"),
        ("rmqs.create", {"target": "new"}, "Create"),
        ("rmqs.metadata", {"targets": [STREAM]}, "Metadata"),
    )
    return next((choice for choice in choices if client.has(choice[0])), None)


@scenario(
    "RMQS-5.17", "SHOULD", "critical", basis=["R18"], roles=PUBLISHER, server=BEAT, timeout_s=90, revision=2
)
async def half_open_connection(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Half-open connection.

    Fault: T = 1 s, a publish and a request pending, then halfopen (drop all packets both ways)
    Pass: Loss reported or connection given up within 8 T; the request ends at its deadline, the publish ends
    unknown
    Seen: stream-dotnet-client#393; aleph#311
    """
    await reconnecting(client, heartbeat_s=heartbeat_of(client, 1))
    await at_work(broker, client, expect)
    period = max(periods(broker, expect).values())
    broker.faults.add(drop(role="confirm", name="no confirms"))
    publishing = client.begin_publish(STREAM, b"pending", timeout=8.0 * period)
    asking: Call | None = None
    asking_kind = ""
    mark = broker.journal.last_seq
    request, deadline = _pending_request(client), client.deadline_s("request", 5.0)
    if request is not None:
        op, args, kind = request
        asking_kind = kind
        broker.faults.add(drop(kind=kind, direction="in", name="no answers"))
        asking = client.begin(op, 5.0, session="s1", **args)
        await expect.reached(broker, f"no {kind} came", kind=kind, since=mark, id=slug("no-{}-came", kind))
    await expect.reached(broker, "no Publish came", kind="Publish", count=2, id="no-publish-came")
    names, events = list(standing(broker)), len(client.events)
    lost = broker.journal.last_seq
    broker.kill(how="half-open")
    broker.faults.clear()
    limit = 8 * period + 0.25
    noticed = await until(lambda: losses(client, events) or let_go(broker, names), limit)
    expect.that(
        noticed,
        "the loss is reported, or the connection given up, within 8 T",
        f"not in {limit} s",
        id="the-loss-is-reported-or-the-connection-given-up-within-n-t",
    )
    if asking is not None:
        result = await asking
        if result.ok:
            anew = answered(broker, asking_kind, lost)
            expect.that(
                anew,
                "the request is ok only with an answer from a new connection",
                "none was sent",
                id="the-request-is-ok-only-with-an-answer-from-a-new-connection",
            )
        else:
            kinds = ("timeout", "connection", "closed")
            expect.failed(
                result, kinds, "the request ends at its deadline", id="the-request-ends-at-its-deadline"
            )
        expect.within(
            result.elapsed_ms / 1000,
            limit_s(deadline),
            "the request ends at its deadline",
            id="the-request-ends-at-its-deadline",
        )
    published = await publishing
    if published.ok:
        again = confirmed(broker, b"pending", lost)
        expect.that(
            again,
            "the publish is not acked without a confirm",
            str(published),
            id="the-publish-is-not-acked-without-a-confirm",
        )
        expect.tolerate(
            False,
            "the publish ends unknown",
            "it was published and confirmed anew",
            id="the-publish-ends-unknown",
        )
    else:
        expect.outcome(published, "unknown", "the publish ends unknown", id="the-publish-ends-unknown")
