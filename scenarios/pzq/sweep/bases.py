"""The base scripts of PZQ; see `conformance.sweep.bases`."""

from __future__ import annotations

from conformance.sweep.bases import Stage, base, text
from scenarios.pzq.sweep._shared import ACKING, PROBE, PUBLISH, put, subscribed, watched


@base(role="publisher")
async def waited(stage: Stage) -> None:
    """Publishes that wait for their outcomes, one after the other and some at a time."""
    await stage.connect()
    await stage.op("publish", body=text("a"), **PUBLISH)
    await stage.ended([stage.begin("publish", body=text(f"b{i}"), **PUBLISH) for i in range(4)])
    await stage.op("publish", body=text("c"), key="own", **PUBLISH)
    await stage.finale("publish", **PROBE)


@base(role="consumer")
async def consume(stage: Stage) -> None:
    """Messages that are acknowledged as they come."""
    put(stage, *[f"m{i}" for i in range(4)])
    await stage.connect()
    await subscribed(stage, ACKING)
    await stage.sleep(3)
    put(stage, "late")
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)


@base(role="monitor")
async def ask(stage: Stage) -> None:
    """Questions to the monitor, one after the other and some at a time."""
    put(stage, "m")
    await stage.connect()
    await stage.op("pzq.monitor")
    await stage.ended([stage.begin("pzq.monitor") for _ in range(3)])
    await stage.finale("pzq.monitor")
