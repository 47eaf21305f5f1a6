"""NET-3.10 and 3.11: clocks that jump, processes that are stopped."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import hold
from scenarios._common import limit_s, maybe_reconnecting
from scenarios.subjects import Subject

LIVENESS_S = 2
HOUR_MS = 3_600_000


@scenario(
    "NET-3.10",
    "SHOULD",
    "high",
    basis=["X11"],
    needs=["clock_offset"],
    ops=("set_clock",),
    liveness_s=LIVENESS_S,
    timeout_s=75,
)
async def wall_clock_jump(subject: Subject, client: Client, expect: Expect) -> None:
    """Wall-clock jump.

    Fault: `set_clock` +1 h, 3 liveness periods, back to 0, 3 periods, -1 h, 3 periods
    Pass: No loss event, no reconnect; heartbeats keep their period; an op started before a jump ends by its
    deadline on the monotonic clock
    Seen: stream-js-client heartbeat uses wall clock (source)
    """
    await subject.ready(**subject.keeping_alive(LIVENESS_S))
    mark, connections = len(client.events), subject.is_open()
    op = subject.patient_op(subject.queue)
    for offset_ms in (HOUR_MS, 0, -HOUR_MS):
        case = f"clock at {offset_ms // 60_000:+d} min"
        call = None
        if op is not None:
            subject.broker.faults.add(hold(kind=op.answer, direction="out", name="answer"))
            call = subject.begin(op, 3.0)
            await asyncio.sleep(0.1)
        await client.prepare("set_clock", offset_ms=offset_ms)
        end = asyncio.get_running_loop().time() + 1.75 * LIVENESS_S
        await subject.heartbeats()
        await asyncio.sleep(max(0.0, end - asyncio.get_running_loop().time()))
        if call is not None and op is not None:
            result = await call
            expect.that(
                not result.ok,
                f"{case}: an op started before the jump ends by its deadline",
                str(result),
                id=slug(
                    "clock-at-{}-min-an-op-started-before-the-jump-ends-by-its-deadline",
                    f"{offset_ms // 60000:+d}",
                ),
            )
            took, deadline = result.elapsed_ms / 1000, subject.deadline_s(op, 3.0)
            expect.within(
                took,
                limit_s(deadline),
                f"{case}: an op started before the jump ends by its deadline",
                id=slug(
                    "clock-at-{}-min-an-op-started-before-the-jump-ends-by-its-deadline",
                    f"{offset_ms // 60000:+d}",
                ),
            )
            expect.not_before(
                took,
                subject.earliest_s(op, 3.0) * 0.9,
                f"{case}: an op started before the jump does not end early",
                id=slug(
                    "clock-at-{}-min-an-op-started-before-the-jump-does-not-end-early",
                    f"{offset_ms // 60000:+d}",
                ),
            )
            subject.broker.faults.remove("answer")
        expect.that(
            not subject.troubles(mark),
            f"{case}: no loss event",
            subject.troubles(mark)[:1],
            id=slug("clock-at-{}-min-no-loss-event", f"{offset_ms // 60000:+d}"),
        )
        expect.equal(
            subject.is_open(),
            connections,
            f"{case}: no reconnect",
            id=slug("clock-at-{}-min-no-reconnect", f"{offset_ms // 60000:+d}"),
        )


@scenario("NET-3.11", "SHOULD", "medium", basis=["X11"], liveness_s=LIVENESS_S, timeout_s=90, process=True)
async def stopped_process(subject: Subject, client: Client, expect: Expect) -> None:
    """SIGSTOP of the client for 3 × liveness.

    Fault: Stop and continue the adapter process with one op pending; meanwhile the fake does what the real
    server does
    Pass: Within 5 s of the resume (30 s with `auto_reconnect`) either a loss event, after which ops fail at
    once or a reconnect works, or the old session works: a new op ends `acked`; the pending op has ended
    Seen: librdkafka#4134; Suwayomi-WebUI#569
    """
    await subject.ready(**maybe_reconnecting(client), **subject.keeping_alive(LIVENESS_S))
    op = next((op for op in subject.ops(subject.queue) if op.timed), subject.ops(subject.queue)[0])
    subject.broker.faults.add(hold(kind=op.answer, direction="out", name="answer"))
    mark, seen = len(client.events), subject.broker.journal.last_seq
    connections = len(subject.accepted())
    patience = max(20.0, subject.deadline_s(op, 20.0))
    call = subject.begin(op, patience)
    await expect.reached(
        subject.broker, f"no {op.asks} came", kind=op.asks, since=seen, id=slug("no-{}-came", op.asks)
    )
    client.adapter.pause()
    try:
        await asyncio.sleep(3 * LIVENESS_S)
    finally:
        client.adapter.resume()
    subject.broker.faults.remove("answer")
    recovers = client.reconnects("producer" if subject.publishes else "locator")
    limit = 30.0 if recovers else 5.0
    found = await subject.until(lambda: subject.troubles(mark), 2.0)
    if found and not recovers:
        result = await subject.begin(subject.ops(subject.queue, "-after")[0], 5.0)
        is_anew = len(subject.accepted()) > connections  # some connect for the next op
        expect.that(
            is_anew or not result.ok,
            "after the loss event ops fail",
            str(result),
            id="after-the-loss-event-ops-fail",
        )
        if not result.ok:
            expect.within(
                result.elapsed_ms / 1000,
                1.45,
                "after the loss event ops fail at once",
                id="after-the-loss-event-ops-fail-at-once",
            )
    else:
        await subject.works_again(
            f"a new op ends acked within {limit:.0f} s of the resume",
            within_s=limit,
            id=slug("a-new-op-ends-acked-within-{}-s-of-the-resume", f"{limit:.0f}"),
        )
    if op.timed:
        expect.ended(await call, "the pending op has ended", id="the-pending-op-has-ended")
