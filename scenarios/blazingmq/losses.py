"""BMQ-5 Connection loss, and what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from conformance.suite import Client, Expect, scenario
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import Category
from fakebrokers.blazingmq.frames import ClientIdentity, OpenQueue
from fakebrokers.core.session import HangUp
from fakebrokers.faults import hold, latency, reply, rst
from scenarios.blazingmq._steps import (
    BOTH,
    DOMAIN,
    PUBLISHER,
    READ,
    accepted,
    begin_open,
    bodies_are,
    configures,
    current,
    eventually,
    from_client,
    lost_within,
    opened,
    ready,
    received,
    sent,
)

BACK_S = 15.0  #: within which a client that reconnects is back


async def cut(broker: BlazingMQ, expect: Expect, how: HangUp = HangUp.RST) -> str:
    """End the newest connection; returns its name."""
    name = current(broker, expect)
    broker.kill(name, how)
    return name


async def back(
    broker: BlazingMQ,
    expect: Expect,
    criterion: str = "it comes back",
    count: int = 2,
    *,
    within_s: float = BACK_S,
    id: str = "it-comes-back",
) -> str:
    """The client has said again who it is; returns the new connection."""
    there = await eventually(lambda: len(received(broker, "clientIdentity")) >= count, within_s)
    expect.that(there, criterion, id=id)
    return received(broker, "clientIdentity")[-1].connection


@scenario("BMQ-5.10", "MUST", "high", basis=["B19"], revision=2)
async def fin_while_idle(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """FIN while idle.

    Fault: fin
    Pass: Session event (connection lost, or disconnected of a client that does not come back) within 1 s
    """
    await client.connected()
    await cut(broker, expect, HangUp.FIN)
    await lost_within(
        client, expect, 1.0 * 1.2 + 0.25, "connection_lost within 1 s", id="connection-lost-within-n-s"
    )


@scenario("BMQ-5.11", "MUST", "critical", basis=["B18", "B19"], roles=PUBLISHER)
async def fin_with_requests(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """FIN with pending requests.

    Fault: fin with an openQueue pending (op timeout 10 s); accept again at once and answer everything
    Pass: Client without `auto_reconnect`: op ends `connection` within 1 s, not at its full timeout; with it:
    the same, or it sends the openQueue again on the new connection and the op ends with that answer; in all
    cases exactly one completion by its deadline
    Seen: measured: Node SDK 1.4.0 waits the full timeout (P-05); wheel 1.2.2 repeats the open after 0.3 to
    0.7 s and succeeds; stream-java-client#812
    """
    await client.connected()
    first = current(broker, expect)
    broker.faults.add(hold(kind="openQueue", direction="in", connection=first))
    call = begin_open(client, timeout=10.0)
    expect.exercised(
        await eventually(lambda: received(broker, "openQueue"), 3.0),
        "no openQueue came",
        id="no-openqueue-came",
    )
    began = client.now
    await cut(broker, expect, HangUp.FIN)
    result = await call
    expect.ended(result, "the open ends by its deadline", id="the-open-ends-by-its-deadline")
    took = result.ended_ns / 1e9 - began
    if result.ok:
        again = [r for r in sent(broker, "openQueueResponse") if r.connection != first]
        expect.that(
            again,
            "it succeeds only with an answer on a new connection",
            id="it-succeeds-only-with-an-answer-on-a-new-connection",
        )
    else:
        expect.failed(result, ("connection", "closed"), "it fails as connection", id="it-fails-as-connection")
        expect.within(took, 1.0 * 1.2 + 0.25, "within 1 s", id="within-n-s")
    if not client.can("auto_reconnect"):
        expect.that(
            not result.ok,
            "a client that does not reconnect cannot succeed",
            id="a-client-that-does-not-reconnect-cannot-succeed",
        )


@scenario("BMQ-5.12", "MUST", "critical", basis=["B2"], needs=["auto_reconnect"])
async def handshake_again(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Reconnect repeats the handshake.

    Fault: RST; accept again; wait up to 30 s for the first frame
    Pass: First frame on the new connection is clientIdentity (AUTHENTICATION before it allowed) and nothing
    else is sent before brokerResponse; same guidInfo.clientId if one was announced
    Seen: measured: Node SDK 1.4.0 does not (P-07); C++ first retry after 0.25 to 0.75 s, Java after 5 s
    """
    await client.connected()
    first = await cut(broker, expect)
    broker.faults.add(latency(0.2, kind="brokerResponse", direction="out"))
    second = await back(broker, expect, "the handshake is repeated", id="the-handshake-is-repeated")
    answered = await broker.wait_for_async(kind="brokerResponse", connection=second, timeout=3.0)
    answered = sent(broker, "brokerResponse", connection=second) or answered
    early = [r for r in from_client(broker, connection=second) if r.seq < answered[0].seq]
    kinds = [r.kind for r in early if r.kind != "authenticationRequest"]
    expect.equal(
        kinds,
        ["clientIdentity"],
        "clientIdentity first, and nothing else before brokerResponse",
        id="clientidentity-first-and-nothing-else-before-brokerresponse",
    )
    ids = []
    for name in (first, second):
        frame = received(broker, "clientIdentity", connection=name)[0].frame
        assert isinstance(frame, ClientIdentity)
        ids.append(frame.guid_info.client_id if frame.guid_info else "")
    expect.equal(ids[0], ids[1], "the client id is the same", id="the-client-id-is-the-same")


def reopened(broker: BlazingMQ, connection: str) -> set[str]:
    """The queues that were opened on a connection."""
    frames = [r.frame for r in received(broker, "openQueue", connection=connection)]
    return {f.handle_parameters.uri for f in frames if isinstance(f, OpenQueue)}


@scenario("BMQ-5.13", "SHOULD", "critical", basis=["B4", "B5"], needs=["auto_reconnect"], roles=BOTH)
async def queues_restored(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Reconnect restores queues.

    Fault: RST with 2 open queues (one reader, one writer); accept again; wait up to 30 s
    Pass: Both are opened again (reader also configured, with a consumer), or a `target_closed` event is
    emitted for each; then a post and a PUSH on the restored queues work; rId goes on rising or restarts, but
    never repeats within the connection
    Seen: blazingmq#1302; blazingmq-sdk-java BrokerSessionIT.multipleQueuesReopenTest; amqp-client#30
    """
    uri = DOMAIN + "orders"
    await client.connected()
    await opened(client, expect, "r", DOMAIN + "read", flags=READ)
    await opened(client, expect, "w", uri)
    await client.subscribed("r")
    await cut(broker, expect)
    second = await back(broker, expect)
    wanted = {DOMAIN + "read", uri}

    def restored() -> bool:
        return reopened(broker, second) == wanted and bool(configures(broker, connection=second))

    def closed() -> int:
        return len([e for e in client.events if e.event == "session" and e["what"] == "target_closed"])

    done = await eventually(lambda: restored() or closed() == 2, 5.0)
    expect.that(
        done,
        "both queues are opened again, the reader configured, or reported as closed",
        id="both-queues-are-opened-again-the-reader-configured-or-told",
    )
    if not restored():
        return
    expect.outcome(
        await client.publish("w", b"after", timeout=10.0), "acked", "a post works", id="a-post-works"
    )
    broker.publish(DOMAIN + "read", b"after")
    bodies_are(expect, await client.wait_messages(1), [b"after"], "a delivery works", id="a-delivery-works")
    numbers = [
        r.keys[0]
        for r in from_client(broker, connection=second)
        if r.keys and r.kind in ("openQueue", "configureStream", "configureQueueStream")
    ]
    expect.equal(
        len(numbers),
        len(set(numbers)),
        "no rId repeats within the connection",
        id="no-rid-repeats-within-the-connection",
    )


@scenario("BMQ-5.14", "SHOULD", "high", basis=["B19"], needs=["auto_reconnect"], roles=PUBLISHER)
async def reopen_refused(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Reopen refused after reconnect.

    Fault: Refuse one of two reopens
    Pass: Event for that queue; the other works; posts to it fail
    """
    await ready(client, expect)
    await opened(client, expect, "bad")
    where = {"handle_parameters.uri": DOMAIN + "bad"}
    broker.faults.add(reply(Category.E_REFUSED, kind="openQueue", where=where))
    await cut(broker, expect)
    await back(broker, expect)
    event = await client.event("session", 5.0, what="target_closed")
    expect.that(
        event is not None, "an event names the queue that is gone", id="an-event-tells-the-queue-that-is-gone"
    )
    assert event is not None
    expect.that(
        {"bad", DOMAIN + "bad"} & set(event["targets"] or []),
        "it names that queue",
        event["targets"],
        id="it-names-that-queue",
    )
    expect.outcome(
        await client.publish("q", b"after", timeout=10.0),
        "acked",
        "the other queue works",
        id="the-other-queue-works",
    )
    result = await client.publish("bad", b"never", timeout=3.0)
    expect.that(
        not result.ok and not result.hang,
        "posts to the queue that is gone fail",
        str(result),
        id="posts-to-the-queue-that-is-gone-fail",
    )


def delays(times: Sequence[float]) -> list[float]:
    """The time between each two moments, in seconds."""
    return [later - earlier for earlier, later in pairwise(times)]


@scenario("BMQ-5.15", "SHOULD", "high", basis=["B19"], needs=["auto_reconnect"], revision=2)
async def back_off(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Back-off on repeated refusal.

    Fault: After a loss accept and RST every new connection for 10 s (so that attempts are counted), then call
    stop while still refusing
    Pass: At most 10 attempts in 10 s, none closer than 100 ms to the one before; stop ends by its deadline
    and no attempt follows it; non-strict: an interval is more than 20 % shorter than the one before, as
    chance may make it
    Seen: kafka-python#1892; librdkafka#403; nats.go#563; blazingmq#1401; measured: Java constant 5 s, C++
    0.25 to 0.75 s then growing by a random factor 1..2
    """
    await client.connected()
    mark = broker.journal.last_seq
    broker.faults.add(rst(on="accept", name="every new connection is reset"))
    lost_at = broker.now - broker.journal.started_at
    await cut(broker, expect)
    await asyncio.sleep(10.0)
    result = await client.close(timeout=5.0)
    expect.ended(result, "stop ends by its deadline", id="stop-ends-by-its-deadline")
    attempts = [r.at for r in accepted(broker, since=mark)]
    await asyncio.sleep(1.0)
    expect.equal(
        len(accepted(broker, since=mark)), len(attempts), "no attempt follows it", id="no-attempt-follows-it"
    )
    expect.that(
        1 <= len(attempts) <= 10, "1 to 10 attempts in 10 s", len(attempts), id="n-to-n-attempts-in-n-s"
    )
    gaps = delays([lost_at, *attempts])
    expect.that(
        all(gap >= 0.1 for gap in gaps[1:]),
        "none closer than 100 ms to the one before",
        gaps,
        id="none-closer-than-n-ms-to-the-one-before",
    )
    constant = all(gap >= 1.0 for gap in gaps) and max(gaps) < 1.5 * min(gaps)
    rising = all(later >= 0.8 * earlier for earlier, later in pairwise(gaps))
    expect.tolerate(  # chance may be part of them, and so much that one is shorter than the one before
        constant or rising,
        "the delays do not shrink, or are constant",
        gaps,
        id="the-delays-do-not-shrink-or-are-constant",
    )


@scenario("BMQ-5.16", "MAY", "low", basis=["B19"], needs=["auto_reconnect"], timeout_s=75.0, revision=2)
async def back_off_resets(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Back-off resets after success.

    Fault: 3 failures (accept, RST), success held for 2 s, then RST and accept
    Pass: Delay after the last loss at most twice the first delay; non-strict: at most twice the longest delay
    before the success (C++ goes on growing unless the last attempt is 120 s old)
    Seen: libbmq reconnecting channel factory (source); blazingmq#1401
    """
    await client.connected()
    mark = broker.journal.last_seq
    broker.faults.add(rst(on="accept", first=3, scope="run"))
    times = [broker.now - broker.journal.started_at]
    await cut(broker, expect)
    await back(broker, expect, within_s=2 * BACK_S)  # its fourth attempt
    times += [r.at for r in accepted(broker, since=mark)]
    before = delays(times)
    expect.exercised(len(before) == 4, f"{len(before)} attempts", id="n-attempts")
    await asyncio.sleep(2.0)
    mark = broker.journal.last_seq
    lost_at = broker.now - broker.journal.started_at
    await cut(broker, expect)
    await back(broker, expect, "it comes back a second time", 3, id="it-comes-back-a-second-time")
    delay = accepted(broker, since=mark)[0].at - lost_at
    within = delay <= 2 * before[0] + 0.25
    what = f"{delay:.2f} s after {before}"
    if not expect.tolerate(
        within,
        "the delay is at most twice the first one",
        what,
        id="the-delay-is-at-most-twice-the-first-one",
    ):
        longest = 2 * max(before) + 0.25
        expect.that(
            delay <= longest,
            "or at most twice the longest one before the success",
            what,
            id="or-at-most-twice-the-longest-one-before-the-success",
        )
