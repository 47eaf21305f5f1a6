"""BMQ-5 Heartbeats: answered, watched, and nothing but a sign of life."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.frames import HeartbeatRequest, HeartbeatResponse
from fakebrokers.faults import drop, hold
from fakebrokers.journal import Record
from scenarios.blazingmq._steps import (
    CONSUMER,
    DOMAIN,
    GRACE,
    GRACE_S,
    PUBLISHER,
    READ,
    Q,
    accepted,
    begin_open,
    current,
    encoded,
    eventually,
    heartbeat,
    losses,
    lost_within,
    one_connection,
    open_queue,
    opened,
    quiet,
    ready,
    received,
    say,
    say_raw,
    sent,
    still_works,
    survives,
    tellings,
)

INTERVAL_S = 0.3
LIMIT = 3
WATCHED = {"heartbeat_s": 0.3, "max_missed": LIMIT}
UNANSWERED = "the client's own requests are not answered"


def answers(broker: BlazingMQ, since: int = 0) -> list[Record]:
    """The signs of life that came."""
    return received(broker, "HEARTBEAT_RSP", since=since)


def answers_at_all(broker: BlazingMQ, expect: Expect) -> None:
    """What a client does that cannot read a HEARTBEAT_REQ says nothing of what else was done to it."""
    expect.exercised(
        answers(broker), "the client answers no HEARTBEAT_REQ", id="the-client-answers-no-heartbeat-req"
    )


async def asked_regularly(broker: BlazingMQ, expect: Expect, count: int, interval_s: float) -> None:
    """Ask so many times, as long as the client stays."""
    for _ in range(count):
        if broker.client_holds(current(broker, expect)) is False:
            return
        heartbeat(broker, expect)
        await asyncio.sleep(interval_s)


async def answered_in_time(
    broker: BlazingMQ, expect: Expect, limit_s: float, criterion: str, since: int = 0, *, id: str
) -> None:
    """Each request has one answer, in time."""
    asked = sent(broker, "HEARTBEAT_REQ", since=since)
    await eventually(lambda: len(answers(broker, since)) >= len(asked), limit_s)
    found = answers(broker, since)
    expect.equal(
        len(found),
        len(asked),
        "each HEARTBEAT_REQ gets one HEARTBEAT_RSP",
        id="each-heartbeat-req-gets-one-heartbeat-rsp",
    )
    for request, answer in zip(asked, found, strict=True):
        expect.within(answer.at - request.at, limit_s, criterion, id=id)


@scenario("BMQ-5.01", "MUST", "critical", basis=["B15"], server=WATCHED)
async def answered_at_once(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Heartbeat answered at once.

    Fault: HEARTBEAT_REQ every interval, 5 times
    Pass: Each gets one HEARTBEAT_RSP within min(interval, 1 s)
    Seen: blazingmq-sdk-java#61
    """
    await client.connected()
    await asked_regularly(broker, expect, 5, INTERVAL_S)
    await answered_in_time(
        broker, expect, INTERVAL_S * GRACE + GRACE_S, "within an interval", id="within-an-interval"
    )


BLOCKS = 320
LOADED = {"heartbeat_s": 0.4, "max_missed": LIMIT}


@scenario("BMQ-5.02", "MUST", "critical", basis=["B15"], roles=CONSUMER, server=LOADED)
async def under_load(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Heartbeat under load.

    Fault: Flood 20 MiB of PUSH while sending HEARTBEAT_REQ
    Pass: Answers stay within maxMissed × interval
    Seen: pika#93
    """
    await ready(client, expect, READ, max_unconfirmed_messages=1000, max_unconfirmed_bytes=64 << 20)
    mark = broker.journal.last_seq
    block = bytes(64 << 10)
    beats = asyncio.ensure_future(asked_regularly(broker, expect, 5, 0.4))
    for number in range(BLOCKS):
        broker.publish(Q, number.to_bytes(4) + block)
        if number % 16 == 0:
            await asyncio.sleep(0.02)
    await beats
    limit_s = LIMIT * 0.4
    await answered_in_time(
        broker, expect, limit_s * GRACE + GRACE_S, "within 3 intervals", mark, id="within-n-intervals"
    )
    messages = await client.wait_messages(BLOCKS, within_s=10.0)
    expect.equal(len(messages), BLOCKS, "all 20 MiB are delivered", id="all-n-mib-are-delivered")


@scenario("BMQ-5.03", "MUST", "high", basis=["B15"], roles=PUBLISHER, server=WATCHED)
async def during_a_request(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Heartbeat answered during a pending request.

    Fault: Hold openQueue answer for 3 intervals
    Pass: Answers keep coming
    Seen: pika#1046
    """
    broker.faults.add(hold(kind="openQueue", direction="in", name="the answer waits"))
    await client.connected()
    call = begin_open(client)
    expect.exercised(
        await eventually(lambda: received(broker, "openQueue"), 3.0),
        "no openQueue came",
        id="no-openqueue-came",
    )
    await asked_regularly(broker, expect, 4, INTERVAL_S)
    expect.that(not call.done, "the open waits", id="the-open-waits")
    await answered_in_time(
        broker, expect, INTERVAL_S * GRACE + GRACE_S, "within an interval", id="within-an-interval"
    )
    broker.faults.release("the answer waits")
    expect.ok(await call, "then the open ends ok", id="then-the-open-ends-ok")


async def falls_silent(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Three heartbeats, then nothing; the client reports the loss."""
    await client.connected()
    await asked_regularly(broker, expect, 3, INTERVAL_S)
    broker.faults.add(drop(role="heartbeat", direction="out", name=UNANSWERED))
    expect.may_not_fire(UNANSWERED, "a client may send no heartbeat requests of its own")
    limit_s = (LIMIT + 3) * INTERVAL_S * GRACE + GRACE_S
    criterion = "connection_lost within maxMissed + 3 intervals of the last byte"
    await lost_within(
        client, expect, limit_s, criterion, id="connection-lost-within-maxmissed-n-intervals-of-the-last"
    )


@scenario("BMQ-5.04", "MUST", "critical", basis=["B16"], server=WATCHED, revision=2)
async def heartbeats_stop(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Heartbeats stop.

    Fault: heartbeatIntervalMs 300, maxMissedHeartbeats 3; send 3 HEARTBEAT_REQ, then total silence with the
    socket open (the client's own HEARTBEAT_REQ, if any, are not answered either)
    Pass: `connection_lost` (or `disconnected` of a client that does not come back) within (maxMissed+3) ×
    interval after the last byte
    Seen: rstream#201; stream-dotnet-client#393; pika#1322; blazingmq#612; measured: wheel 1.2.2 notices
    nothing; newer libbmq sends its own requests and cuts after maxMissed+1 silent intervals
    """
    await falls_silent(broker, client, expect)


@scenario("BMQ-5.05", "SHOULD", "medium", basis=["B16"], server=WATCHED, revision=2)
async def reported_once(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Loss is reported once.

    Fault: As above, wait 5 more periods
    Pass: Exactly one CONNECTION_LOST (or, of a client that does not come back, `disconnected`) per loss; the
    socket is closed or a reconnect starts
    Seen: measured: Node SDK 1.4.0 emitted the event 6 times in 3 s and kept the socket (P-03)
    """
    await falls_silent(broker, client, expect)
    broker.faults.remove(UNANSWERED)
    await asyncio.sleep(5 * INTERVAL_S)
    expect.equal(
        len(tellings(client)), 1, "one connection_lost for one loss", id="one-connection-lost-for-one-loss"
    )
    first = accepted(broker)[0].connection
    gone = broker.client_holds(first) is False
    expect.that(
        gone or len(accepted(broker)) > 1,
        "the socket is closed, or a reconnect starts",
        id="the-socket-is-closed-or-a-reconnect-starts",
    )


@scenario("BMQ-5.06", "SHOULD", "high", basis=["B16"], roles=CONSUMER, server=WATCHED, revision=2)
async def any_traffic_counts(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Any traffic counts as liveness.

    Fault: heartbeatIntervalMs 300, maxMissedHeartbeats 3; one HEARTBEAT_REQ, then for 10 intervals no more of
    them but ACK or PUSH traffic every 100 ms (as a real broker does: it asks only when it heard nothing)
    Pass: No `connection_lost`; the session stays usable
    Seen: rstream#208; dart_amqp#106; Node SDK: only requests count (source)
    """
    await ready(client, expect, READ)
    heartbeat(broker, expect)
    broker.faults.add(drop(role="heartbeat", direction="out", name=UNANSWERED))
    expect.may_not_fire(UNANSWERED, "a client may send no heartbeat requests of its own")
    count = round(10 * INTERVAL_S / 0.1)
    for number in range(count):
        broker.publish(Q, b"%d" % number)
        await asyncio.sleep(0.1)
    expect.that(not losses(client), "no connection_lost", losses(client)[:1], id="no-connection-lost")
    messages = await client.wait_messages(count)
    if not messages:
        answers_at_all(broker, expect)
    expect.equal(len(messages), count, "every message was delivered", id="every-message-was-delivered")
    one_connection(broker, expect, "the session stays usable", id="the-session-stays-usable")


@scenario("BMQ-5.07", "SHOULD", "medium", basis=["B16"], roles=PUBLISHER, server=WATCHED, revision=2)
async def late_heartbeat(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Late heartbeat.

    Fault: Delay one to 1.8 × interval
    Pass: No CONNECTION_LOST
    """
    await ready(client, expect)
    await asked_regularly(broker, expect, 2, INTERVAL_S)
    await asyncio.sleep(0.8 * INTERVAL_S)
    await asked_regularly(broker, expect, 2, INTERVAL_S)
    expect.that(not losses(client), "no connection_lost", losses(client)[:1], id="no-connection-lost")
    answers_at_all(broker, expect)
    await still_works(broker, client, expect, "the session works on", id="the-session-works-on")
    one_connection(broker, expect, "on one connection", id="on-one-connection")


@scenario("BMQ-5.08", "SHOULD", "medium", basis=["B15"], roles=PUBLISHER, revision=2)
async def flood(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """HEARTBEAT_REQ flood.

    Fault: 1000 in one segment
    Pass: ≤ 1000 answers, session alive
    """
    await ready(client, expect)
    say_raw(broker, expect, encoded(HeartbeatRequest()) * 1000)
    await quiet(0.5)
    found = len(answers(broker))
    expect.that(1 <= found <= 1000, "at most 1000 answers", found, id="at-most-n-answers")
    await still_works(broker, client, expect, "the session is alive", id="the-session-is-alive")
    one_connection(broker, expect, "on one connection", id="on-one-connection")


@scenario("BMQ-5.09", "SHOULD", "low", basis=["B19"], roles=PUBLISHER)
async def answer_nobody_asked_for(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """HEARTBEAT_RSP from the broker.

    Fault: Inject type 12
    Pass: Ignored
    """
    await ready(client, expect)
    say(broker, expect, HeartbeatResponse())
    await quiet(0.2)
    await survives(client, expect)
    await still_works(broker, client, expect, "it is ignored", id="it-is-ignored")
    one_connection(broker, expect, "on one connection", id="on-one-connection")


@scenario(
    "BMQ-5.17",
    "SHOULD",
    "medium",
    basis=["B2", "B16"],
    roles=PUBLISHER,
    server={"heartbeat_s": 0.2, "max_missed": 0},
    revision=2,
)
async def watchdog_off(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """maxMissedHeartbeats 0 switches the watchdog off.

    Fault: brokerResponse with heartbeatIntervalMs 200 and maxMissedHeartbeats 0 (default of a real broker for
    clients); one HEARTBEAT_REQ, then silence for 5 s, then a post
    Pass: No `connection_lost`, connection kept, the post is acked
    Seen: Node SDK 1.4.0 replaces 0 by its default 10 (source)
    """
    await client.connected()
    await opened(client, expect, "q", DOMAIN + "orders")
    heartbeat(broker, expect)
    await asyncio.sleep(5.0)
    expect.that(not losses(client), "no connection_lost", losses(client)[:1], id="no-connection-lost")
    answers_at_all(broker, expect)
    one_connection(broker, expect, "the connection is kept", id="the-connection-is-kept")
    await still_works(broker, client, expect, "the post is acked", id="the-post-is-acked")


@scenario(
    "BMQ-5.18",
    "SHOULD",
    "medium",
    basis=["B16"],
    roles=PUBLISHER,
    server={"heartbeat_s": 0.3, "max_missed": 2},
    revision=2,
)
async def own_requests(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """The client's own heartbeat requests are answered.

    Fault: heartbeatIntervalMs 300, maxMissedHeartbeats 2, idle session for 5 s; the simulator answers every
    HEARTBEAT_REQ of the client with HEARTBEAT_RSP and sends nothing else
    Pass: No `connection_lost`, connection kept, at most one request per interval; a client that sends no
    request: `inconclusive`
    Seen: libbmq since blazingmq#612 (source)
    """
    await client.connected()
    await asyncio.sleep(5.0)
    asked = received(broker, "HEARTBEAT_REQ")
    expect.exercised(
        asked,
        "the client sends no heartbeat requests of its own",
        id="the-client-sends-no-heartbeat-requests-of-its-own",
    )
    expect.that(not losses(client), "no connection_lost", losses(client)[:1], id="no-connection-lost")
    one_connection(broker, expect, "the connection is kept", id="the-connection-is-kept")
    expect.that(
        len(asked) <= 5.0 / 0.3 + 1,
        "at most one request per interval",
        len(asked),
        id="at-most-one-request-per-interval",
    )
    expect.ok(await open_queue(client), "the session is usable", id="the-session-is-usable")
    expect.that(
        sent(broker, "openQueueResponse"),
        "the session is usable",
        "no openQueue came",
        id="the-session-is-usable",
    )
