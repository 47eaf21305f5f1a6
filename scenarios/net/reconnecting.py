"""NET-2 Connection life cycle: losing the connection and coming back."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from conformance.clients.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import drop, rst
from scenarios._common import second_fake
from scenarios.subjects import PUBLISHER, ROLES, Subject

BACK_S = 30.0
SPREAD_S = 0.02


async def back(subject: Subject, mark: int, within_s: float = BACK_S) -> bool:
    """Whether a connection is set up again after the journal's record `mark`."""
    return await subject.until(lambda: subject.established(mark), within_s)


@scenario("NET-2.01", "SHOULD", "high", basis=["X6"], needs=["auto_reconnect"], roles=PUBLISHER, timeout_s=75)
async def refuse_then_accept(subject: Subject, client: Client, expect: Expect) -> None:
    """Refuse then accept.

    Fault: rst of the established connection and refuse for 3 s, then accept (refused attempts cannot be seen
    by the fake and are not counted)
    Pass: Connected within 30 s after the listener is back; a publish or call then ends `acked`; as many
    connections as before, not more
    Seen: aio-pika#202; measured delays: libzmq 0.1 s, nats.js 2 s, Java BlazingMQ SDK 5 s
    """
    await subject.ready(auto_reconnect=True)
    before = len(subject.is_open())
    mark = subject.broker.journal.last_seq
    subject.shut()
    await asyncio.sleep(3.0)
    subject.reopen()
    took = await subject.works_again(
        "a publish then ends acked, within 30 s", within_s=BACK_S, id="a-publish-then-ends-acked-within-n-s"
    )
    expect.that(
        subject.established(mark),
        "connected again within 30 s",
        "no new connection",
        id="connected-again-within-n-s",
    )
    expect.note(f"acked {took:.1f} s after the listener was back")
    await asyncio.sleep(1.0)
    after = len(subject.is_open())
    expect.that(
        after <= before,
        "as many connections as before, not more",
        f"{before} and then {after}",
        id="as-many-connections-as-before-not-more",
    )


@scenario("NET-2.02", "SHOULD", "high", basis=["X6"], needs=["auto_reconnect"], timeout_s=75, revision=3)
async def reconnect_storm(subject: Subject, client: Client, expect: Expect) -> None:
    """Reconnect storm.

    Fault: Accept and rst at once for 15 s, (a) from the start, (b) after an established connection
    Pass: At most 30 attempts in 15 s per logical connection, and not more in the last 5 s than in the
    first 5 s (growing, or fixed at 0.5 s and more); close ends it (non-strict, pzq: attempts that end
    when they have handed over what was given to the client before). A client that does not retry the
    first connect has no (a)
    Seen: kafka-python#1892; librdkafka#403; measured: moleculer 0.14.36 and 0.15.2 over MQTT start one more
    client every 5 s (5 attempts in the first 5 s, 15 in the third, 60 in 22 s); ioredis 25, nats.js 4 and
    blazingmq wheel 1.2.2 7 attempts in 15 s are fine
    """
    await subject.ready(auto_reconnect=True)
    connections = max(1, len(subject.is_open()))
    with second_fake(subject.broker, **subject.settings(60.0)) as other:
        dead = subject.beside(other)
        for each in (subject, dead):
            each.faults.add(rst(on="accept"))
        mark, begun = subject.wire.journal.last_seq, subject.wire.now - subject.wire.journal.started_at
        subject.wire.kill(how="rst")
        first = await dead.begin_opening("first", 15.0, endpoints=other.where, auto_reconnect=True)
        await asyncio.sleep(0.5)
        waiting = subject.prompt("s1")
        await asyncio.sleep(14.5)
        _no_storm(dead, "(a) from the start", dead.accepted(), 1)
        after_loss = [at - begun for at in subject.accepted(mark)]
        expect.exercised(after_loss, "the client did not try again", id="the-client-did-not-try-again")
        _no_storm(subject, "(b) after a loss", after_loss, connections)
        for session in ("s1", "first"):
            expect.ended(await client.begin("close", 5.0, session=session), "close ends", id="close-ends")
        await first
        await waiting
        await asyncio.sleep(subject.linger_s)
        mark = subject.wire.journal.last_seq
        await asyncio.sleep(5.0)
        await _no_more(subject, mark)


async def _no_more(subject: Subject, mark: int) -> None:
    """Demand that nobody has tried to connect, but for what was to be sent before the close."""
    attempts = len(subject.accepted(mark))
    seen = f"{attempts} attempts after it"
    if attempts:
        subject.faults.clear()
        await asyncio.sleep(2.0)
    if subject.only_handed_over(mark):
        seen = f"{seen}, for what was to be sent before"
        subject.expect.tolerate(False, "close ends it", seen, id="close-ends-it")
    else:
        subject.expect.that(not attempts, "close ends it", seen, id="close-ends-it")


def _no_storm(subject: Subject, case: str, times: list[float], logical: int) -> None:
    """Judge when attempts came, in seconds, for so many logical connections."""
    expect, limit = subject.expect, subject.attempts_in_15_s * logical
    expect.that(
        len(times) <= limit,
        f"{case}: at most {limit} attempts in 15 s",
        len(times),
        id=slug("{}-at-most-{}-attempts-in-n-s", case, limit),
    )
    head, tail = sum(at < 5.0 for at in times), sum(at >= 10.0 for at in times)
    if not subject.retries_steadily:
        expect.that(
            tail <= head + 1,  # with a pause of 1 s 4 in the first 5 s, and 5 in the last
            f"{case}: not more in the last 5 s than in the first",
            f"{head}, {tail}",
            id=slug("{}-not-more-in-the-last-n-s-than-in-the-first", case),
        )
    expect.note(f"{case}: {len(times)} attempts, {head} in the first and {tail} in the last 5 s")


@scenario("NET-2.03", "MAY", "low", basis=["X6"], needs=["auto_reconnect"], timeout_s=60, revision=2)
async def jitter_among_clients(subject: Subject, client: Client, expect: Expect) -> None:
    """Jitter among clients.

    Fault: 20 sessions of one adapter, one server restart (rst of all, refuse for 2 s)
    Pass: Middle half of the first arrivals spread over at least 20 ms, as they do where each session draws up
    to 100 ms (their middle half is 48 ms on average); figure reported
    Seen: nats.go#563; pulsar-client-go#556
    """
    crowd = subject.crowd
    await asyncio.gather(*(subject.ready(f"s{number}", auto_reconnect=True) for number in range(crowd)))
    await asyncio.sleep(0.5)
    mark = subject.broker.journal.last_seq
    subject.shut()
    await asyncio.sleep(0.5)
    waiting = [subject.prompt(f"s{number}") for number in range(crowd)]
    await asyncio.sleep(1.5)
    subject.reopen()
    await subject.until(lambda: len(subject.accepted(mark)) >= crowd, 15.0)
    arrivals = sorted(subject.accepted(mark))[:crowd]
    expect.exercised(
        len(arrivals) == crowd,
        f"only {len(arrivals)} of {crowd} sessions came back within 15 s",
        id="only-n-of-n-sessions-came-back-within-n-s",
    )
    spread = arrivals[crowd - crowd // 4 - 1] - arrivals[crowd // 4]
    expect.that(
        spread >= SPREAD_S,
        f"the middle half of the arrivals spreads over {SPREAD_S * 1000:.0f} ms and more",
        f"{spread:.3f} s",
        id="the-middle-half-of-the-arrivals-spreads-over-n-ms-and-more",
    )
    expect.note(f"the middle half of the arrivals spreads over {spread:.3f} s")
    for call in waiting:
        await call


@scenario(
    "NET-2.04", "SHOULD", "high", basis=["X6"], needs=["auto_reconnect"], roles=PUBLISHER, timeout_s=150
)
async def flapping_link(subject: Subject, client: Client, expect: Expect) -> None:
    """Flapping link.

    Fault: 7 × (up 2 s, then rst of all connections and refuse for 1 s) with one publish or call every 200 ms,
    then up for good
    Pass: Connected within 30 s of the last heal (60 s for back-offs that kept growing: non-strict); every op
    has ended, no `acked` message is missing at the fake; as many open connections as before; a new op ends
    `acked`
    Seen: moleculer#707; stream-dotnet-client#336
    """
    await subject.ready(auto_reconnect=True)
    before = len(subject.is_open())
    calls: dict[bytes, Call] = {}
    timed = subject.publishes_in_time

    async def publish_for(seconds: float) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            body = b"flap %04d" % len(calls)
            calls[body] = subject.begin_publish(subject.queue, body, timeout=5.0)
            await asyncio.sleep(0.2)

    for _ in range(7):
        await publish_for(2.0)
        subject.shut()
        await publish_for(1.0)
        subject.reopen()
    took = await subject.works_again(
        "connected within 30 s (60 s) of the last heal",
        within_s=60.0,
        id="connected-within-n-s-n-s-of-the-last-heal",
    )
    expect.tolerate(
        took <= BACK_S * 1.2,
        "connected within 30 s of the last heal",
        f"{took:.0f} s",
        id="connected-within-n-s-of-the-last-heal",
    )
    for body, call in calls.items():
        result = await call
        if timed:
            expect.ended(result, "every op has ended", id="every-op-has-ended")
        if result.ok:
            expect.that(
                subject.holds(body),
                "no acked message is missing at the broker",
                body.decode(),
                id="no-acked-message-is-missing-at-the-broker",
            )
    await asyncio.sleep(1.0)
    after = len(subject.is_open())
    expect.that(
        after <= before,
        "as many open connections as before",
        f"{before} and then {after}",
        id="as-many-open-connections-as-before",
    )


@scenario("NET-2.09", "SHOULD", "high", basis=["X6"], needs=["auto_reconnect"], roles=ROLES, timeout_s=120)
async def restart_without_state(subject: Subject, client: Client, expect: Expect) -> None:
    """Restart without state.

    Fault: Crash with a publish pending; 1 s later listen again with empty state; then one new message for
    each old subscription
    Pass: Within 40 s each subscription is made again and gets it, or the application is notified
    (`target_closed`, error event, failed op); no consumer that is silently dead; the pending publish is
    `acked` only if it is in the new state.
    Seen: stream-dotnet-client#335; stream-java-client#565
    """
    await subject.ready(auto_reconnect=True)
    expect.prepared(await subject.subscribe(subject.queue))
    expect.exercised(
        await subject.wait_messages(1),
        "the first message was not delivered",
        id="the-first-message-was-not-surfaced",
    )
    subject.broker.faults.add(drop(kind=subject.confirm, direction="out", name="no confirm"))
    pending = subject.begin_publish(subject.queue, b"pending", timeout=5.0)
    await expect.reached(
        subject.broker, "nothing was published", kind=subject.publishing, count=2, id="nothing-was-published"
    )
    await asyncio.sleep(0.1)
    mark = len(client.events)
    subject.broker.crash(keep_state=False)
    subject.broker.faults.clear()
    await asyncio.sleep(1.0)
    seen = len(subject.messages("c1"))
    subject.broker.restart()
    await asyncio.sleep(1.0)
    subject.add_queue(subject.queue)
    for number in range(80):
        subject.put(subject.queue, [b"new %d" % number])
        if len(await subject.wait_messages(seen + 1, within_s=0.5)) > seen or subject.reported_of_the_end(
            mark
        ):
            break
    got = subject.messages("c1")[seen:]
    reported = subject.reported_of_the_end(mark)
    expect.that(
        got or reported,
        "the subscription is made again, or the application is notified, within 40 s",
        "neither",
        id="the-subscription-is-made-again-or-the-application-is-told",
    )
    result = await pending
    if result.ok:
        expect.that(
            subject.holds(b"pending"),
            "the pending publish is acked only if it is in the new state",
            id="the-pending-publish-is-acked-only-if-it-is-in-the-new-state",
        )


@scenario(
    "NET-2.10", "SHOULD", "critical", basis=["X6"], needs=["auto_reconnect"], roles=ROLES, timeout_s=120
)
async def nothing_doubled(subject: Subject, client: Client, expect: Expect) -> None:
    """Nothing doubled by a reconnect.

    Fault: 3 × rst of all connections of the client, each after it is back; then 10 new messages
    Pass: Each is delivered exactly once; each subscription (openQueue and configure, Subscribe, WebSocket)
    exists once over all open connections; a publish then ends `acked` once
    Seen: stream-dotnet-client#273; EasyNetQ#1329
    """
    await subject.ready(auto_reconnect=True)
    expect.prepared(await subject.subscribe(subject.queue))
    await subject.hears()
    before = len(subject.is_open())
    for number in range(3):
        mark = subject.broker.journal.last_seq
        subject.broker.kill(how="rst")
        subscribed = lambda mark=mark: subject.subscriptions(mark)  # noqa: E731
        expect.that(
            await subject.until(subscribed, BACK_S),
            f"loss {number + 1}: the subscription is made again",
            "not in 30 s",
            id="loss-n-the-subscription-is-made-again",
        )
        await subject.works_again(
            f"loss {number + 1}: a publish is acked", within_s=BACK_S, id="loss-n-a-publish-is-acked"
        )
        await subject.until(lambda: len(subject.is_open()) >= before, 5.0)
    await asyncio.sleep(1.0)
    seen = len(subject.messages("c1"))
    subject.put(subject.queue, subject.bodies(10, "doubled"))
    await subject.wait_messages(seen + 10)
    await asyncio.sleep(0.5)
    got = [message.body for message in subject.messages("c1")[seen:]]
    places = [message.position for message in subject.messages("c1")[seen:]]
    expect.that(
        len(got) == 10,
        "each new message is delivered exactly once",
        f"{len(got)} came at {places}",
        id="each-new-message-is-surfaced-exactly-once",
    )
    expect.that(all(int(b) > int(a) for a, b in pairwise(places)), "in order", places, id="in-order")
    live = [r for r in subject.subscriptions(0) if r.connection in subject.is_open()]
    expect.equal(
        len(live),
        1,
        "each subscription exists once over all open connections",
        id="each-subscription-exists-once-over-all-open-connections",
    )
    expect.outcome(
        await subject.publish(subject.queue, b"at last"),
        "acked",
        "a publish then ends acked",
        id="a-publish-then-ends-acked",
    )
    expect.equal(subject.holds(b"at last"), 1, "once", id="once")
    after = len(subject.is_open())
    expect.that(
        after <= before,
        "no more connections than before",
        f"{before} and then {after}",
        id="no-more-connections-than-before",
    )
