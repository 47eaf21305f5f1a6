"""NET-3 Requests: answers, deadlines, and sessions that must not disturb each other."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import hold
from fakebrokers.journal import Tap
from scenarios._common import limit_s, second_fake
from scenarios.subjects import PUBLISHER, Op, Subject


@scenario("NET-3.01", "SHOULD", "critical", basis=["X8"], needs=["cancel"], revision=2)
async def cancelled_op_and_publish(subject: Subject, client: Client, expect: Expect) -> None:
    """Cancelled op.

    Fault: Hold the answer of op A; cancel A; start B of the same kind; release both answers in order
    Pass: A ends `cancelled`; B ends with its own answer, or with `connection`/`closed` because the client
    gave the connection up; never with A's answer; a third op works
    Seen: redis-py#2624; redis-py#1134
    """
    await cancelled_op(subject, client, expect)
    if subject.publishes:
        await _cancelled_publish(subject, client, expect)


async def _cancelled_publish(subject: Subject, client: Client, expect: Expect) -> None:
    """The confirms of A and B are released one by one: B may not end with A's."""
    for number, name in ((1, "answer of A"), (2, "answer of B")):
        subject.broker.faults.add(
            hold(kind=subject.confirm, direction="out", nth=number, scope="run", name=name)
        )
    mark = subject.broker.journal.last_seq
    first = subject.begin_publish(subject.queue, b"A")
    await expect.reached(
        subject.broker, "A was not published", kind=subject.publishing, since=mark, id="a-was-not-published"
    )
    await client.adapter.cancel(first)
    expect.failed(
        await first, ("cancelled",), "a publish ends as cancelled", id="a-publish-ends-as-cancelled"
    )
    second = subject.begin_publish(subject.queue, b"B")
    came = await subject.until(lambda: subject.broker.faults.fired("answer of B"), 2.0)
    subject.broker.faults.release("answer of A")
    await asyncio.sleep(0.3)
    if came:
        early = second.done and (await second).ok
        expect.that(
            not early, "B is never acked by A's confirm", "it is", id="b-is-never-acked-by-a-s-confirm"
        )
    subject.broker.faults.remove("answer of A")
    subject.broker.faults.remove("answer of B")
    result = await second
    if not result.ok:
        criterion = "B ends with its own confirm, or as connection or closed"
        expect.failed(
            result,
            ("connection", "closed"),
            criterion,
            id="b-ends-with-its-own-confirm-or-as-connection-or-closed",
        )
        if not client.reconnects("producer"):
            await subject.connected()
    await subject.works_again("a third publish works", within_s=10.0, id="a-third-publish-works")


async def cancelled_op(subject: Subject, client: Client, expect: Expect) -> None:
    await subject.ready()
    made = [subject.value_made_for(number) for number in (1, 2, 3)]
    ops = [one[0] for one in made if one is not None] or _publishes(subject)
    values = [one[1] for one in made if one is not None]
    expect.exercised(
        client.has(ops[0].op),
        "the client has no op that could be cancelled",
        id="the-client-has-no-op-that-could-be-cancelled",
    )
    subject.broker.faults.add(subject.withholding(kind=ops[0].answer, name="answers"))
    mark = subject.broker.journal.last_seq
    first = subject.begin(ops[0], 5.0)
    await expect.reached(
        subject.broker,
        f"no {ops[0].asks} came",
        kind=ops[0].asks,
        since=mark,
        id=slug("no-{}-came", ops[0].asks),
    )
    await client.adapter.cancel(first)
    cancelled = await first
    expect.failed(cancelled, ("cancelled",), "A ends as cancelled", id="a-ends-as-cancelled")
    second = subject.begin(ops[1], 5.0)
    await asyncio.sleep(0.3)
    subject.broker.faults.remove("answers")
    result = await second
    if result.ok and values:
        expect.equal(
            subject.value_of(result),
            values[1],
            "B ends with its own answer, never with A's",
            id="b-ends-with-its-own-answer-never-with-a-s",
        )
    elif not result.ok:
        expect.failed(
            result,
            ("connection", "closed"),
            "B ends with its own answer, or as connection or closed",
            id="b-ends-with-its-own-answer-or-as-connection-or-closed",
        )
        if not client.reconnects("locator"):
            await subject.connected()
    third = await subject.begin(ops[2], 5.0)
    expect.ok(third, "a third op works", id="a-third-op-works")
    if values:
        expect.equal(
            subject.value_of(third),
            values[2],
            "a third op gets its own answer",
            id="a-third-op-gets-its-own-answer",
        )


def _publishes(subject: Subject) -> list[Op]:
    args = {"target": subject.queue, "body": {"text": "one of three"}, "wait": True}
    return [Op("publish", "publish", subject.publishing, subject.confirm, args)] * 3


@scenario("NET-3.02", "MUST", "high", basis=["X8"], needs=["concurrent"], timeout_s=60)
async def hundred_concurrent_ops(subject: Subject, client: Client, expect: Expect) -> None:
    """100 concurrent ops.

    Fault: Answers in an order drawn from the seed
    Pass: Each op ends exactly once, with the result that was made for it
    Seen: kafka-python#1748
    """
    await subject.ready()
    made = [one for number in range(100) if (one := subject.value_made_for(number)) is not None]
    expect.exercised(
        made and client.can("concurrent"),
        "the client has no such op, or one at a time",
        id="the-client-has-no-such-op-or-one-at-a-time",
    )
    kind = made[0][0].answer
    subject.broker.faults.add(subject.shuffled(kind, 100))
    calls = [subject.begin(op, 10.0) for op, _ in made]
    for number, (call, (_, value)) in enumerate(zip(calls, made, strict=True)):
        result = await call
        expect.that(
            result.ok, f"op {number} ends with its result", str(result), id="op-n-ends-with-its-result"
        )
        expect.equal(
            subject.value_of(result),
            value,
            f"op {number} ends with the result that was made for it",
            id="op-n-ends-with-the-result-that-was-made-for-it",
        )
    said = [(r.connection, r.keys) for r in subject.broker.journal.select(kind=kind, tap=Tap.SAID)]
    sent = [(r.connection, r.keys) for r in subject.broker.journal.select(kind=kind, tap=Tap.SENT)]
    expect.exercised(
        said != sent, "the client sends one request at a time", id="the-client-sends-one-request-at-a-time"
    )


@scenario("NET-3.03", "MUST", "critical", basis=["X8"], timeout_s=75, revision=2)
async def op_deadline(subject: Subject, client: Client, expect: Expect) -> None:
    """Op deadline respected.

    Fault: silent from the established session on (heartbeats excepted); each kind of op that waits for an
    answer (a publish only with `ack_timeout`) with 500 ms, alone
    Pass: Ends with `timeout` in [0.9 D, 1.2 D + 250 ms], D = 500 ms, or as late as the adapter declared in
    `limits`; `state.pending`, where known, is 0 after it. Who gives the connection up then, and reports that:
    non-strict
    Seen: aio-pika#636; measured: rstream 1.1.1 has a fixed 10 s for requests, stock Moleculer has none unless
    requestTimeout is set
    """
    subject.add_queue(subject.queue)
    ops = [op for op in subject.ops(subject.queue) if op.timed]
    expect.exercised(
        ops,
        "the client has no op that waits for an answer",
        id="the-client-has-no-op-that-waits-for-an-answer",
    )
    for op in ops:
        await subject.ready(op.label)
    subject.broker.faults.add(subject.withholding(spare=("heartbeat",), name="silent"))
    calls = [subject.begin(op, 0.5, op.label) for op in ops]
    results = [await call for call in calls]
    for op, result in zip(ops, results, strict=True):
        is_given_up = result.word == "connection"
        kinds = ("timeout", "connection") if is_given_up else ("timeout",)
        criterion, id = f"{op.label} ends as timeout", slug("{}-ends-as-timeout", op.label)
        expect.failed(result, kinds, criterion, id=id)
        expect.tolerate(not is_given_up, criterion, str(result), id=id)
        deadline = subject.deadline_s(op, 0.5)
        took = result.elapsed_ms / 1000
        expect.within(
            took,
            limit_s(deadline),
            f"{op.label} ends at its deadline",
            id=slug("{}-ends-at-its-deadline", op.label),
        )
        expect.not_before(
            took,
            subject.earliest_s(op, 0.5) * 0.9,
            f"{op.label} ends at its deadline",
            id=slug("{}-ends-at-its-deadline", op.label),
        )
        pending = (await client.state(op.label))["pending"]
        expect.that(
            pending in (None, 0),
            f"{op.label}: nothing is pending after it",
            pending,
            id=slug("{}-nothing-is-pending-after-it", op.label),
        )


@scenario(
    "NET-3.12", "SHOULD", "high", basis=["X6", "X10"], roles=PUBLISHER, liveness_s=4, timeout_s=75, revision=2
)
async def trouble_of_another_session(subject: Subject, client: Client, expect: Expect) -> None:
    """One session's trouble stays its own.

    Fault: Session A: halfopen with 5 ops pending, then rst, then refuse for 5 s. Session B: clean, one
    publish or call every 100 ms
    Pass: Every op of B ends `acked` within 1 s; no session event on B; B's heartbeats keep their period
    Seen: rstream#276; stream-java-client#1005; stream-go-client#496
    """
    await subject.ready("clean", **subject.keeping_alive(4))
    with second_fake(subject.broker, **subject.settings(4)) as other:
        broken = subject.beside(other)
        broken.add_queue(broken.queue)
        await broken.connected("broken", endpoints=other.where, **subject.keeping_alive(4))
        first = await broken.publish(broken.queue, b"first", session="broken")
        expect.prepared(first)
        expect.exercised(
            broken.holds(b"first") and broken.is_open(),
            "the other session has no connection",
            id="the-other-session-has-no-connection",
        )
        mark = len(client.events)
        beating = asyncio.ensure_future(subject.heartbeats())
        trouble = asyncio.ensure_future(_trouble(broken, client))
        loop = asyncio.get_running_loop()
        end = loop.time() + 9.0
        number = 0
        while loop.time() < end:
            number += 1
            due = loop.time() + 0.1
            result = await subject.publish(subject.queue, b"clean %d" % number, session="clean", timeout=5.0)
            if beating.done():
                await beating  # heartbeats that went wrong are a cause of their own
            expect.outcome(
                result,
                "acked",
                f"op {number} of the clean session ends acked",
                id="op-n-of-the-clean-session-ends-acked",
            )
            expect.within(
                result.elapsed_ms / 1000,
                1.45,
                f"op {number} of the clean session within 1 s",
                id="op-n-of-the-clean-session-within-n-s",
            )
            await asyncio.sleep(max(0.0, due - loop.time()))
        await trouble
        await beating
        there = [body for body in subject.stored(subject.queue) if b"clean " in body]
        expect.that(
            len(there) >= number,
            "what the clean session reported as acked is at the broker",
            number,
            id="what-the-clean-session-was-told-is-acked-is-at-the-broker",
        )
        reported = [e for e in client.events[mark:] if e.event == "session" and e["session"] == "clean"]
        expect.that(
            not reported,
            "no session event on the clean session",
            reported[:1],
            id="no-session-event-on-the-clean-session",
        )


async def _trouble(broken: Subject, client: Client) -> None:
    """Five publishes pending, then half-open, then RST and no server for 5 s."""
    mark = broken.wire.journal.last_seq
    broken.broker.faults.add(hold(kind=broken.confirm, direction="out", name="no confirms"))
    calls = [broken.begin_publish(broken.queue, b"lost", session="broken", timeout=3.0) for _ in range(5)]
    await broken.until(lambda: broken.broker.journal.select(kind=broken.publishing, since=mark), 1.0)
    for connection in broken.is_open():
        broken.wire.kill(connection, how="half-open")
    await asyncio.sleep(2.0)
    broken.shut(5.0)
    for call in calls:
        await call
    await asyncio.sleep(4.0)
