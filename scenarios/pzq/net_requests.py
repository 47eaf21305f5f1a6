"""NET-3.01 and 3.02 for PZQ: publishes, as its monitor gives all clients the same answer."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import hold, reorder, rewrite
from fakebrokers.journal import Tap
from scenarios.pzq._steps import produced
from scenarios.pzq.subject import PzqSubject
from scenarios.subjects import PUBLISHER

ROUNDS, AT_ONCE = 20, 5
REFUSED = {"status": "0", "texts": ["refused"]}  #: what distinguishes answers


@scenario("NET-3.01", protocol="pzq", roles=PUBLISHER)
async def cancelled_publish(subject: PzqSubject, client: Client, expect: Expect) -> None:
    broker = subject.fake
    await subject.ready()
    refused = rewrite(REFUSED, role="confirm", nth=1, scope="run")
    broker.faults.add(refused, hold(direction="out", name="answers"))
    mark = broker.journal.last_seq
    first = subject.begin_publish(subject.queue, b"A")
    await expect.reached(broker, "A was not published", kind="Produce", since=mark, id="a-was-not-published")
    await client.adapter.cancel(first)
    expect.failed(await first, ("cancelled",), "A ends as cancelled", id="a-ends-as-cancelled")
    second = subject.begin_publish(subject.queue, b"B")
    await expect.reached(
        broker, "B was not published", kind="Produce", since=mark, count=2, id="b-was-not-published"
    )
    broker.faults.remove("answers")
    result = await second
    if result.kind not in ("connection", "closed"):
        expect.outcome(
            result,
            "acked",
            "B ends with its own answer, never with A's",
            id="b-ends-with-its-own-answer-never-with-a-s",
        )
    third = await subject.publish(subject.queue, b"C")
    expect.outcome(third, "acked", "a third op works", id="a-third-op-works")


@scenario("NET-3.02", protocol="pzq", roles=PUBLISHER, timeout_s=60)
async def five_publishes_at_once(subject: PzqSubject, client: Client, expect: Expect) -> None:
    broker = subject.fake
    await subject.ready()
    refused = rewrite(REFUSED, role="confirm", every=2, scope="run")
    mixed = reorder(window=AT_ONCE, order="shuffle", within_s=0.05, role="confirm", direction="out")
    broker.faults.add(refused, mixed)
    bodies = subject.bodies(ROUNDS * AT_ONCE, "at once")
    mark, results = broker.journal.last_seq, []
    for first in range(0, len(bodies), AT_ONCE):
        some = bodies[first : first + AT_ONCE]
        calls = [subject.begin_publish(subject.queue, body, timeout=10.0) for body in some]
        results += await asyncio.gather(*calls)
    came = [frame.body for frame in produced(broker, mark)]
    for body, result in zip(bodies, results, strict=True):
        wanted = "nacked" if came.index((body,)) % 2 else "acked"
        expect.outcome(
            result,
            wanted,
            f"{body.decode()} ends with the result that was made for it",
            id=slug("{}-ends-with-the-result-that-was-made-for-it", body.decode()),
        )
    expect.equal(len(came), len(bodies), "each op ends exactly once", id="each-op-ends-exactly-once")
    said, sent = (
        [record.keys for record in broker.journal.select(role="confirm", tap=tap)]
        for tap in (Tap.SAID, Tap.SENT)
    )
    expect.exercised(
        said != sent, "the client sends one message at a time", id="the-client-sends-one-message-at-a-time"
    )
