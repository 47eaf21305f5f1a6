"""Base scripts about the life of a session, and of those who ask."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import rst
from fakebrokers.pzq.faults import garbled_monitor
from scenarios.pzq.sweep._shared import ACKING, EVENTS, PROBE, PUBLISH, put, subscribed, watched

SLOW = {"ack_timeout_s": 30.0}
STILL_S = 10.0
ODD_LINES = (
    "messages: 1\nsyncs: 2\n",
    "messages: 1\nsyncs: 2",
    "messages:1\nload : 1.5\n\nversion: v1: rc: 2\nfree text",
    "uptime: 3 days\nmessages: 0012\nnew_key: \n: 7",
)


@base(role="monitor")
async def ask(stage: ScriptContext) -> None:
    """Questions to the monitor, one after the other and some at a time."""
    put(stage, "m")
    await stage.connect()
    await stage.op("pzq.monitor")
    await stage.ended([stage.begin("pzq.monitor") for _ in range(3)])
    await stage.finale("pzq.monitor")


@base(role="monitor", bends=False)
async def odd_counters(stage: ScriptContext) -> None:
    """A monitor that answers with other things than counters, in lines of other shapes."""
    stage.notes.lies = True
    await stage.connect()
    for lines in ODD_LINES:
        name = stage.broker.faults.add(garbled_monitor(lines))
        await stage.op("pzq.monitor")
        stage.broker.faults.remove(name)
    await stage.finale("pzq.monitor")


@base(role="publisher")
async def both(stage: ScriptContext) -> None:
    """One session produces, consumes and asks."""
    await stage.connect()
    await subscribed(stage, ACKING)
    for number in range(3):
        await stage.op("publish", body=text(f"a{number}"), **PUBLISH)
        await stage.op("pzq.monitor")
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def closing(stage: ScriptContext) -> None:
    """A close with everything under way."""
    put(stage, *[f"m{i}" for i in range(4)])
    await stage.connect()
    await subscribed(stage, {**EVENTS, "sleep_ms": 100})
    for number in range(3):
        stage.begin("publish", body=text(f"a{number}"), **PUBLISH)
    stage.begin("pzq.monitor")
    await stage.close()
    await stage.op("publish", body=text("z"), **PUBLISH)
    await stage.op("pzq.monitor")


@base(role="publisher", bends=False)
async def outage(stage: ScriptContext) -> None:
    """The broker is away for a while with ops open; what was begun meanwhile leaves when it is back."""
    await stage.connect()
    await subscribed(stage, ACKING)
    await stage.op("publish", body=text("a"), **PUBLISH)
    stage.killed.update(stage.broker.engine.connections)
    stage.broker.crash()
    call = stage.begin("publish", 20.0, body=text("b"), **PUBLISH)
    asked = stage.begin("pzq.monitor", 20.0)
    await stage.sleep(3)
    stage.broker.restart()
    await stage.ended([call, asked])
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def two_sessions(stage: ScriptContext) -> None:
    """Two sessions; the application closes one, the other goes on."""
    stage.notes.sessions = 2
    await stage.connect()
    await stage.connect("s2")
    calls = [
        stage.begin("publish", session=name, body=text(f"{name}{i}"), **PUBLISH)
        for i in range(2)
        for name in ("s1", "s2")
    ]
    await stage.ended(calls)
    await stage.op("close", session="s2")
    await stage.op("publish", body=text("mine"), **PUBLISH)
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False)
async def rounds(stage: ScriptContext) -> None:
    """Losses again and again: the client holds no more after the last one than after the first."""
    await stage.connect()
    await subscribed(stage, ACKING)
    stage.mark("rounds")
    for number in range(6):
        stage.kill("rst")
        await stage.sleep(2)
        put(stage, f"m{number}")
        await stage.op("publish", body=text(f"a{number}"), **PUBLISH)
        await stage.op("pzq.monitor")
        await stage.op("stats")
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False, server=SLOW)
async def stood_still(stage: ScriptContext) -> None:
    """The process is stopped for a while, twice; after that everything is as before."""
    await stage.connect()
    await subscribed(stage, ACKING)
    for number in range(2):
        await stage.op("publish", body=text(f"a{number}"), **PUBLISH)
        await stage.sleep(1)
        await stage.stand_still(STILL_S, stops_client=True)
        put(stage, f"m{number}")
        await stage.sleep(1)
    await stage.op("publish", body=text("b"), **PUBLISH)
    await stage.op("pzq.monitor")
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False)
async def turned_away(stage: ScriptContext) -> None:
    """The broker ends every connection as soon as it is there, for a while; then it lets them be."""
    await stage.connect()
    await subscribed(stage, ACKING)
    await stage.op("publish", body=text("a"), **PUBLISH)
    stage.broker.faults.add(rst(on="accept"))
    stage.kill("rst")
    call = stage.begin("publish", 20.0, body=text("b"), **PUBLISH)
    await stage.sleep(3)
    stage.calm()
    await stage.ended([call])
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)
