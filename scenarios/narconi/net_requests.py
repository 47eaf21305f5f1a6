"""NET-3.01 and 3.02 for Narconi, whose confirms carry no id: only their order tells them apart."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from fakebrokers.faults import hold, latency
from fakebrokers.journal import Tap
from fakebrokers.narconi.faults import error_instead_of_confirm
from scenarios.narconi.subject import NarconiSubject
from scenarios.net.requests import cancelled_op, hundred_concurrent_ops


@scenario("NET-3.01", protocol="narconi", roles=("publisher", "http"), revision=2)
async def cancelled_request_and_publish(subject: NarconiSubject, client: Client, expect: Expect) -> None:
    await cancelled_op(subject, client, expect)
    broker = subject.fake
    broker.faults.add(
        hold(behind=True, kind=subject.confirm, direction="out", nth=1, scope="run", name="answer of A"),
        error_instead_of_confirm("not B", 500, nth=2, scope="run", name="answer of B"),
    )
    mark = broker.journal.last_seq
    first = subject.begin_publish(subject.queue, b"A")
    await expect.reached(
        broker, "nothing was published", kind=subject.publishing, since=mark, id="nothing-was-published"
    )
    await client.adapter.cancel(first)
    expect.failed(
        await first, ("cancelled",), "a publish ends as cancelled", id="a-publish-ends-as-cancelled"
    )
    second = subject.begin_publish(subject.queue, b"B")
    await asyncio.sleep(0.3)
    broker.faults.remove("answer of A")
    kinds = ("refused", "connection", "closed")
    result = await second
    expect.failed(
        result,
        kinds,
        "B is refused by its own answer, never acked by A's confirm",
        id="b-is-refused-by-its-own-answer-never-acked-by-a-s-confirm",
    )
    if result.word != "refused":
        broker.faults.remove("answer of B")
        expect.may_not_fire("answer of B", "a client that gave the connection up with A need not send B")
    if not client.reconnects("producer"):
        await subject.connected()
    await subject.works_again("a third publish works", within_s=10.0, id="a-third-publish-works")


@scenario("NET-3.02", protocol="narconi", roles=("publisher", "http"), timeout_s=60, revision=2)
async def hundred_requests_and_publishes(subject: NarconiSubject, client: Client, expect: Expect) -> None:
    await hundred_concurrent_ops(subject, client, expect)
    broker = subject.fake
    broker.faults.add(latency(0.01, jitter=0.01, kind=subject.confirm, direction="out"))
    bodies = subject.bodies(100, "at once")
    mark = broker.journal.last_seq
    calls = [subject.begin_publish(subject.queue, body, timeout=10.0) for body in bodies]
    ended: dict[bytes, int] = {}
    for body, call in zip(bodies, calls, strict=True):
        result = await call
        expect.outcome(
            result, "acked", "each of 100 publishes ends acked", id="each-of-n-publishes-ends-acked"
        )
        ended[body] = result.ended_ns
    there = [body for body in subject.stored(subject.queue) if body in ended]
    expect.equal(
        len(there), 100, "each message is at the broker once", id="each-message-is-at-the-broker-once"
    )
    # Callers that wait in threads of their own may wake up in any order: only what ends too early is wrong.
    confirms = broker.journal.select(kind=subject.confirm, tap=Tap.SENT, since=mark)
    said_ns = [int((record.at + broker.journal.started_at) * 1e9) for record in confirms]
    early = [n for n, (body, at_ns) in enumerate(zip(there, said_ns, strict=False), 1) if ended[body] < at_ns]
    expect.that(
        not early,
        "no publish ends before the confirm of its message was sent",
        f"messages {early}",
        id="confirms-end-publishes-in-the-order-of-the-messages",
    )
