"""NET-3.10 and 3.11: clocks that jump, processes that stand still."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from fakebrokers.faults import hold
from fakebrokers.server import FakeServer
from scenarios.net._scripts import script_for
from scenarios.net._scripts.helpers import maybe_reconnecting
from scenarios.net._scripts.narconi import NARC, SETTINGS
from scenarios.net._scripts.pzq import PROXIED, PZQ
from scenarios.net._scripts.rabbitmq_stream import liveness

RMQS = ("rabbitmq-stream",)
LIVENESS_S = 2
HOUR_MS = 3_600_000


@scenario("NET-3.10", protocols=PZQ, ops=("set_clock",), server=PROXIED, sockets=False, timeout_s=75)
@scenario("NET-3.10", protocols=NARC, ops=("set_clock",), server=SETTINGS, timeout_s=75)
@scenario("NET-3.10", protocols=RMQS, ops=("set_clock",), server=liveness(LIVENESS_S), timeout_s=75)
async def wall_clock_jump(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready(**script.keeping_alive(LIVENESS_S))
    mark, connections = len(client.events), script.is_open()
    op = script.patient_op(script.queue)
    for offset_ms in (HOUR_MS, 0, -HOUR_MS):
        case = f"clock at {offset_ms // 60_000:+d} min"
        call = None
        if op is not None:
            broker.faults.add(hold(kind=op.answer, direction="out", name="answer"))
            call = script.begin(op, 3.0)
            await asyncio.sleep(0.1)
        await client.prepare("set_clock", offset_ms=offset_ms)
        end = asyncio.get_running_loop().time() + 1.75 * LIVENESS_S
        await script.heartbeats()
        await asyncio.sleep(max(0.0, end - asyncio.get_running_loop().time()))
        if call is not None and op is not None:
            result = await call
            expect.that(
                not result.ok, f"{case}: an op started before the jump ends by its deadline", str(result)
            )
            took, deadline = result.elapsed_ms / 1000, script.deadline_s(op, 3.0)
            expect.within(
                took, deadline * 1.2 + 0.25, f"{case}: an op started before the jump ends by its deadline"
            )
            expect.not_before(
                took, deadline * 0.9, f"{case}: an op started before the jump does not end early"
            )
            broker.faults.remove("answer")
        expect.that(not script.troubles(mark), f"{case}: no loss event", script.troubles(mark)[:1])
        expect.equal(script.is_open(), connections, f"{case}: no reconnect")


@scenario("NET-3.11", protocols=PZQ, server=PROXIED, process=True, timeout_s=90)
@scenario("NET-3.11", protocols=NARC, roles=("publisher",), server=SETTINGS, process=True, timeout_s=90)
@scenario("NET-3.11", protocols=RMQS, server=liveness(LIVENESS_S), process=True, timeout_s=90)
async def stopped_process(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready(**maybe_reconnecting(client), **script.keeping_alive(LIVENESS_S))
    op = next((op for op in script.ops(script.queue) if op.timed), script.ops(script.queue)[0])
    broker.faults.add(hold(kind=op.answer, direction="out", name="answer"))
    mark, seen = len(client.events), broker.journal.last_seq
    patience = max(20.0, client.deadline_s("request", 20.0))
    call = script.begin(op, patience)
    await expect.reached(broker, f"no {op.asks} came", kind=op.asks, since=seen)
    client.adapter.pause()
    try:
        await asyncio.sleep(3 * LIVENESS_S)
    finally:
        client.adapter.resume()
    broker.faults.remove("answer")
    recovers = client.reconnects("locator")
    limit = 30.0 if recovers else 5.0
    found = await script.until(lambda: script.troubles(mark), 2.0)
    if found and not recovers:
        result = await script.begin(script.ops(script.queue, "-after")[0], 5.0)
        expect.that(not result.ok, "after the loss event ops fail", str(result))
        expect.within(result.elapsed_ms / 1000, 1.45, "after the loss event ops fail at once")
    else:
        await script.works_again(f"a new op ends acked within {limit:.0f} s of the resume", within_s=limit)
    if op.timed:
        expect.ended(await call, "the pending op has ended")
