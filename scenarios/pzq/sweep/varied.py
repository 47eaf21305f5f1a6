"""Base scripts of what a client can be given besides: ops in callbacks, no time, a wrong clock, an abort."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import latency
from scenarios.pzq.sweep._shared import ACKING, EVENTS, PROBE, PUBLISH, put, settle_all, subscribed, watched


@base(role="consumer", injections=False, needs=["reentrant"])
async def inside(context: ScriptContext) -> None:
    """Callbacks that publish and ask the monitor, and one that ends its own subscription."""
    await context.connect()
    ops: list[dict[str, Any]] = [
        {"op": "pzq.monitor", "args": {"session": "s1"}, "timeout_ms": 2000},
        {"op": "state", "args": {"session": "s1"}, "timeout_ms": 2000},
    ]
    await subscribed(context, {**ACKING, "do": ops})
    put(context, "m0", "m1")
    await context.op("publish", body=text("outer"), **PUBLISH)
    await context.sleep(2)
    await context.op("unsubscribe", sub="c1")
    end = {"op": "unsubscribe", "args": {"sub": "c2"}, "timeout_ms": 2000}
    await subscribed(context, {"mode": "event", "do": [end]}, "c2")
    put(context, "m2")
    await context.sleep(1)
    await subscribed(context, ACKING, "c3")
    await context.sleep(8)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def hasty(context: ScriptContext) -> None:
    """Ops that get no time, or nearly none, between others that get enough."""
    put(context, "m0", "m1")
    await context.connect()
    await subscribed(context, EVENTS)
    context.broker.faults.add(latency(1.0, direction="out"))
    for number, timeout in enumerate((0.0, 0.001, 2.0, 0.0)):
        calls = [
            context.begin("publish", timeout, body=text(f"a{number}"), **PUBLISH),
            context.begin("pzq.monitor", timeout),
            context.begin("publish", body=text(f"b{number}"), **PUBLISH),
        ]
        await context.ended(calls)
        await context.sleep(2)
    await settle_all(context, "ack")
    await context.op("unsubscribe", 0.0, sub="c1")
    await subscribed(context, ACKING, "c2")
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False, needs=["clock_offset"])
async def wrong_clock(context: ScriptContext) -> None:
    """The clock of the wall jumps to and fro while questions and messages are under way."""
    await context.connect()
    await subscribed(context, ACKING)
    context.broker.faults.add(latency(0.3, direction="out"))
    for number, offset_ms in enumerate((3_600_000.0, -7_200_000.0, 0.0)):
        put(context, f"m{number}")
        calls = [context.begin("publish", body=text(f"a{number}"), **PUBLISH), context.begin("pzq.monitor")]
        await context.sleep(0.1)
        await context.op("set_clock", offset_ms=offset_ms)
        await context.ended(calls)
        await context.sleep(5)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["abort"])
async def aborted(context: ScriptContext) -> None:
    """The application drops its session while ops are under way, and connects anew under the same name."""
    put(context, "m0", "m1")
    await context.connect()
    await subscribed(context, {**EVENTS, "sleep_ms": 500})
    name = context.broker.faults.add(latency(0.5, direction="out"))
    calls = [context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(2)]
    calls.append(context.begin("pzq.monitor"))
    await context.sleep(0.1)
    await context.op("abort")
    await context.ended(calls)
    await context.op("publish", body=text("behind"), **PUBLISH)
    await context.op("abort")
    await context.op("state")
    context.broker.faults.remove(name)
    await context.sleep(5)
    await context.connect()
    await subscribed(context, ACKING, "c2")
    await context.sleep(8)
    await watched(context, "last")
    await context.finale("publish", **PROBE)
