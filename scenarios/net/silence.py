"""NET-1.07 to 1.09 and 1.16: the server is gone, busy, or quiet."""

from __future__ import annotations

import asyncio

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import half_open, hold, stall
from fakebrokers.journal import Tap
from scenarios._footprint import Footprint
from scenarios.subjects import PUBLISHER, Op, Subject

KEEPALIVE = ("keepalive",)
OFFERED = 20 << 20  #: bytes
BACK_S = 10.0


@scenario("NET-1.07", "SHOULD", "critical", basis=["X3"], liveness_s=2, timeout_s=75)
async def server_vanishes(subject: Subject, client: Client, expect: Expect) -> None:
    """Half-open: server vanishes.

    Fault: halfopen with one op of each kind pending. L is the liveness limit of the protocol
    Pass: Loss found within L × 1.2 + 1 s: a `connection_lost`, `reconnecting` or `disconnected` event; every
    pending op ends by its deadline; close ends by its deadline. Non-strict: no loss event, but every op and
    close ended by its deadline
    Seen: pika#1046; stream-dotnet-client#393; ws#2207; measured: rstream 1.1.1 and rabbitmq-stream-js-client
    1.0.0 find nothing in 7 s (P-26, P-29)
    """
    await subject.ready(**subject.keeping_alive(2))
    ops = subject.ops(subject.queue)
    mark, loop = len(client.events), asyncio.get_running_loop()
    for connection in subject.is_open():
        subject.wire.kill(connection, how="half-open")
    subject.faults.add(half_open(on="accept", name="so is every new connection"))
    expect.may_not_fire("so is every new connection", "a client need not connect again by itself")
    limit = subject.found_within_s(2.0)
    calls = [subject.begin(op, limit + 4.6 if subject.finds_losses else 3.0) for op in ops]
    begun = loop.time()
    heard = None
    while subject.finds_losses and heard is None and loop.time() - begun < limit:
        await asyncio.sleep(0.05)
        heard = next((e for e in subject.troubles(mark) if e.event == "session"), None)
    for op, call in zip(ops, calls, strict=True):
        result = await call
        if op.timed or heard is not None:
            expect.ended(
                result,
                f"the pending {op.label} ends by its deadline",
                id=slug("the-pending-{}-ends-by-its-deadline", op.label),
            )
        expect.that(
            not result.ok,
            f"the pending {op.label} gets no answer",
            str(result),
            id=slug("the-pending-{}-gets-no-answer", op.label),
        )
    expect.ended(
        await client.begin("close", 5.0, session="s1"),
        "close ends by its deadline",
        id="close-ends-by-its-deadline",
    )
    if subject.finds_losses:
        expect.tolerate(
            heard,
            f"the loss is found within {limit:.1f} s",
            "no loss event",
            id=slug("the-loss-is-found-within-{}-s", f"{limit:.1f}"),
        )


@scenario("NET-1.08", "SHOULD", "high", basis=["X4"], roles=PUBLISHER, liveness_s=30, timeout_s=75)
async def server_stops_reading(subject: Subject, client: Client, expect: Expect) -> None:
    """Server stops reading.

    Fault: stall-read for 5 s while 20 MiB are offered in 64 KiB bodies, `wait` false; the fake goes on
    writing; liveness limit 30 s; op deadlines 20 s
    Pass: Publishing waits, fails or is buffered (figure reported); RSS growth under 64 MiB; after the stall
    every op ends, every `acked` message is at the fake once and intact, no loss event
    Seen: rabbitmq-java-client#46; stream-dotnet-client#313
    """
    await subject.ready(**subject.keeping_alive(30))
    await asyncio.sleep(0.3)
    footprint = Footprint(client)
    mark = len(client.events)
    subject.faults.add(stall(for_s=5.0, direction="in", nth=1, name="busy", **subject.next_publish()))
    size = subject.bulk
    bodies = [{"gen": "rand", "seed": number, "len": size} for number in range(OFFERED // size)]
    calls: list[Call] = []
    for body in bodies:
        calls.append(subject.begin_publish(subject.queue, body, timeout=20.0, wait=False))
        await asyncio.sleep(0.005)
    results = [await call for call in calls]
    for number, result in enumerate(results):
        expect.ended(
            result, f"publish {number + 1} ends by its deadline", id="publish-n-ends-by-its-deadline"
        )
    expect.exercised(subject.faults.fired("busy"), "nothing was published", id="nothing-was-published")
    footprint.judge(expect, rss_mib=64)
    sent = {result.id for result in results if result.ok}
    await subject.until(lambda: sent <= subject.outcomes(results, mark).keys(), 25.0)
    ends = subject.outcomes(results, mark)
    missing = sent - ends.keys()
    expect.that(
        not missing,
        "after the stall every op ends",
        f"{len(missing)} of {len(sent)} did not",
        id="after-the-stall-every-op-ends",
    )
    acked = sum(word == "acked" for word in ends.values())
    there = [body for body in subject.stored(subject.queue) if len(body) >= size]
    expect.that(
        len(there) >= acked,
        "every acked message is at the broker",
        f"{acked} and {len(there)}",
        id="every-acked-message-is-at-the-broker",
    )
    whole = len(set(there))
    expect.that(
        whole == len(there),
        "each of them once and intact",
        f"{whole} different of {len(there)}",
        id="each-of-them-once-and-intact",
    )
    expect.that(not subject.troubles(mark), "no loss event", subject.troubles(mark)[:1], id="no-loss-event")
    expect.note(f"{acked} of {len(bodies)} messages were acked, {len(results) - len(sent)} refused at once")


@scenario("NET-1.09", "MUST", "high", basis=["X3", "X8"], timeout_s=75, revision=3)
async def alive_but_mute(subject: Subject, client: Client, expect: Expect) -> None:
    """Server alive but answers nothing.

    Fault: silent after the handshake, heartbeats excepted; one op of each kind with 1 s; then all late
    answers at once, then normal service
    Pass: Each op ends by its deadline (a publish only with `ack_timeout`), publishes as `unknown`; late
    answers complete nothing, least of all a publish that the broker does not have yet; a new op of each kind
    then works on the same connection or on a new one (a client may drop the connection after a timeout)
    Seen: iggy#4262
    """
    await subject.ready()
    subject.broker.faults.add(hold(spare=("heartbeat",), direction="out", name="mute"))
    ops = subject.ops(subject.queue)
    calls = [subject.begin(op, 1.0) for op in ops]
    endless = []
    for op, call in zip(ops, calls, strict=True):
        result = await call
        if result.hang and not op.timed:
            endless.append(call)
            continue
        expect.ended(result, f"{op.label} ends by its deadline", id=slug("{}-ends-by-its-deadline", op.label))
        if op.publishes:
            expect.outcome(
                result, "unknown", f"{op.label} ends as unknown", id=slug("{}-ends-as-unknown", op.label)
            )
        else:
            expect.failed(
                result,
                ("timeout", "connection", "closed"),
                f"{op.label} ends as timeout",
                id=slug("{}-ends-as-timeout", op.label),
            )
    asked = {op.label: len(subject.broker.journal.select(kind=op.asks)) for op in ops}
    expect.exercised(
        all(asked.values()), f"not all requests came: {asked}", id=slug("not-all-requests-came-{}", asked)
    )
    waiting = await _waiting_publish(subject) if subject.publishes_in_time else None
    mark = len(client.events)
    subject.broker.faults.remove("mute")
    await asyncio.sleep(0.3)
    late = [e for e in client.events[mark:] if e.event in ("outcome", "error")]
    expect.that(
        not late or endless, "late answers complete nothing", late[:2], id="late-answers-complete-nothing"
    )
    if waiting is not None:
        result = await waiting
        expect.that(
            not result.ok,
            "late answers complete no publish that waits for its own",
            str(result),
            id="late-answers-complete-no-publish-that-waits-for-its-own",
        )
        if result.word in ("connection", "closed"):
            expect.may_not_fire("unheard", "who has given the connection up may leave the next to its user")
        subject.broker.faults.remove("unheard")
    await _works_again(subject)


async def _works_again(subject: Subject) -> None:
    """New ops work, on any connection."""
    if await _is_gone(subject.client):
        await subject.connected("s1")
    for op in subject.ops(subject.queue, "-again"):
        result = await _tried(subject, op)
        subject.expect.ok(result, f"a new {op.label} works", id=slug("a-new-{}-works", op.label))


async def _tried(subject: Subject, op: Op) -> Result:
    """An op where the connection may have been given up: the application connects again, or waits for it."""
    client, loop = subject.client, asyncio.get_running_loop()
    until_s, is_left = loop.time() + BACK_S, not client.reconnects("producer")
    while True:
        result = await subject.begin(op, 5.0)
        is_away = result.word in ("connection", "closed") or (not result.ok and await _is_gone(client))
        if not is_away or loop.time() > until_s:
            return result
        if is_left:
            await subject.connected("s1")
        await asyncio.sleep(0.2)


async def _waiting_publish(subject: Subject) -> Call | None:
    """A publish that the broker gets only after its time-out, so that no confirm before that is its own."""
    if not subject.publishes:
        return None
    subject.broker.faults.add(hold(kind=subject.publishing, direction="in", name="unheard"))
    mark = subject.broker.journal.last_seq
    call = subject.begin_publish(subject.queue, b"unheard", timeout=2.0)
    await subject.until(lambda: subject.broker.journal.select(kind=subject.publishing, since=mark), 0.5)
    return call


async def _is_gone(client: Client) -> bool:
    return not client.can("auto_reconnect") and not (await client.state())["open"]


@scenario("NET-1.16", "SHOULD", "high", basis=["X3"], liveness_s=4, timeout_s=60)
async def freeze_below_the_limit(subject: Subject, client: Client, expect: Expect) -> None:
    """Freeze shorter than the liveness limit.

    Fault: Hold all that the fake would send, so that the longest gap is 0.8 × the liveness limit, one op with
    a longer deadline pending; then release in one burst; 3 times
    Pass: No loss event, no reconnect; the pending op ends with its answer; nothing delivered twice
    Seen: pika#243; moleculer#705
    """
    limit = 4.0
    await subject.ready(**subject.keeping_alive(2 * limit))  # at the earliest after half of it
    mark, connections = len(client.events), subject.is_open()
    expect.exercised(connections, "the client keeps no connection", id="the-client-keeps-no-connection")
    for number in range(3):
        subject.broker.faults.add(hold(behind=True, direction="out", name="frozen"))
        frozen_at = _last_word(subject)
        op = subject.ops(subject.queue, f"-{number}")[0]
        call = subject.begin(op, 8.0)
        await asyncio.sleep(frozen_at + 0.8 * limit - subject.broker.now)
        subject.broker.faults.remove("frozen")
        expect.ok(
            await call,
            f"freeze {number + 1}: the pending {op.label} ends with its answer",
            id=slug("freeze-n-the-pending-{}-ends-with-its-answer", op.label),
        )
    expect.that(not subject.troubles(mark), "no loss event", subject.troubles(mark)[:2], id="no-loss-event")
    expect.equal(subject.is_open(), connections, "no reconnect", id="no-reconnect")


def _last_word(subject: Subject) -> float:
    """When the fake last said something on each of its connections: the earliest of these moments."""
    journal = subject.broker.journal
    last = {record.connection: record.at for record in journal.select(tap=Tap.SENT)}
    return min(last[name] for name in subject.is_open()) + journal.started_at
