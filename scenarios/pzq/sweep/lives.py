"""Base scripts about the life of a session, and of those who ask."""

from __future__ import annotations

from conformance.run.bases import Base, ScriptContext, base, text
from fakebrokers.faults import latency, rst
from fakebrokers.pzq.faults import garbled_monitor
from scenarios.pzq.sweep._shared import ACKING, EVENTS, PROBE, PUBLISH, put, subscribed, watched

SLOW = {"ack_timeout_s": 30.0}
STILL_S = 10.0
ODD_LINES = (
    "messages: 1\nsyncs: 2\n",
    "messages: 1\nsyncs: 2",
    "messages:1\nload : 1.5\n\nversion: v1: rc: 2\nfree text",
    "uptime: 3 days\nmessages: 0012\nnew_key: \n: 7",
    "messages: \u0661\u0662\nsyncs: 1_0\nload: +3",
    "messages: 5\u00b2",
    "messages: " + 5000 * "9",
)
#: Where so many bits end, of a whole number or of a floating-point one.
LARGE = {
    32: (2**31 - 1, 2**31, 2**32, 5_000_000_000),
    53: (2**53, 2**53 + 1),
    64: (2**63 - 1, 2**63, 2**64 - 1),
}


@base(role="monitor")
async def ask(context: ScriptContext) -> None:
    """Questions to the monitor, one after the other and some at a time."""
    put(context, "m")
    await context.connect()
    await context.op("pzq.monitor")
    await context.ended([context.begin("pzq.monitor") for _ in range(3)])
    await context.finale("pzq.monitor")


@base(role="monitor", injections=False)
async def odd_counters(context: ScriptContext) -> None:
    """A monitor that answers with other things than counters, in lines of other shapes."""
    context.notes.lies = True
    await context.connect()
    for lines in ODD_LINES:
        name = context.broker.faults.add(garbled_monitor(lines))
        await context.op("pzq.monitor")
        context.broker.faults.remove(name)
    await context.finale("pzq.monitor")


def large_counters(bits: int) -> Base:
    """Counters of a broker that is old and full."""

    async def script(context: ScriptContext) -> None:
        """Counters at the end of what fits into so many bits, and beyond it."""
        context.notes.lies = True
        await context.connect()
        for number in LARGE[bits]:
            lines = f"messages: 7\ndb_size: {number}\nexpired_messages: {number}\n"
            name = context.broker.faults.add(garbled_monitor(lines))
            await context.op("pzq.monitor")
            context.broker.faults.remove(name)
        await context.finale("pzq.monitor")

    return base(role="monitor", injections=False, name=f"large-counters-{bits}")(script)


LARGE_COUNTERS = [large_counters(bits) for bits in LARGE]


@base(role="monitor", injections=False)
async def answered_late(context: ScriptContext) -> None:
    """Questions whose answers come when their ops are over; then others, and the counters have changed."""
    await context.connect()
    for number in range(2):
        name = context.broker.faults.add(latency(1.0, direction="out"))
        await context.op("pzq.monitor", 0.5)
        context.broker.faults.remove(name)
        put(context, f"m{number}")
        await context.sleep(2)
        await context.op("pzq.monitor")
    await context.finale("pzq.monitor")


@base(role="publisher")
async def both(context: ScriptContext) -> None:
    """One session produces, consumes and asks."""
    await context.connect()
    await subscribed(context, ACKING)
    for number in range(3):
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.op("pzq.monitor")
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def closing(context: ScriptContext) -> None:
    """A close with everything under way."""
    put(context, *[f"m{i}" for i in range(4)])
    await context.connect()
    await subscribed(context, {**EVENTS, "sleep_ms": 100})
    for number in range(3):
        context.begin("publish", body=text(f"a{number}"), **PUBLISH)
    context.begin("pzq.monitor")
    await context.close()
    await context.op("publish", body=text("z"), **PUBLISH)
    await context.op("pzq.monitor")


@base(role="publisher", injections=False)
async def outage(context: ScriptContext) -> None:
    """The broker is away for a while with ops open; what was begun meanwhile leaves when it is back."""
    await context.connect()
    await subscribed(context, ACKING)
    await context.op("publish", body=text("a"), **PUBLISH)
    context.killed.update(context.broker.engine.connections)
    context.broker.crash()
    call = context.begin("publish", 20.0, body=text("b"), **PUBLISH)
    asked = context.begin("pzq.monitor", 20.0)
    await context.sleep(3)
    context.broker.restart()
    await context.ended([call, asked])
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def two_sessions(context: ScriptContext) -> None:
    """Two sessions; the application closes one, the other goes on."""
    context.notes.sessions = 2
    await context.connect()
    await context.connect("s2")
    calls = [
        context.begin("publish", session=name, body=text(f"{name}{i}"), **PUBLISH)
        for i in range(2)
        for name in ("s1", "s2")
    ]
    await context.ended(calls)
    await context.op("close", session="s2")
    await context.op("publish", body=text("mine"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def rounds(context: ScriptContext) -> None:
    """Losses again and again: the client holds no more after the last one than after the first."""
    await context.connect()
    await subscribed(context, ACKING)
    context.mark("rounds")
    for number in range(6):
        context.kill("rst")
        await context.sleep(2)
        put(context, f"m{number}")
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.op("pzq.monitor")
        await context.op("stats")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def at_rest(context: ScriptContext) -> None:
    """The same ops again and again: what the client holds after them must not grow."""
    await context.connect()
    context.mark("rounds")
    for number in range(6):
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.op("publish", target="", wait=False, body=text(f"u{number}"))
        await context.op("pzq.monitor")
        await subscribed(context, ACKING, f"c{number}")
        put(context, f"m{number}")
        await context.sleep(0.5)
        await context.op("unsubscribe", sub=f"c{number}")
        await context.sleep(2)
        await context.op("stats")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False, server=SLOW)
async def stood_still(context: ScriptContext) -> None:
    """The process is stopped for a while, twice; after that everything is as before."""
    await context.connect()
    await subscribed(context, ACKING)
    for number in range(2):
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.sleep(1)
        await context.stand_still(STILL_S, stops_client=True)
        put(context, f"m{number}")
        await context.sleep(1)
    await context.op("publish", body=text("b"), **PUBLISH)
    await context.op("pzq.monitor")
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def turned_away(context: ScriptContext) -> None:
    """The broker ends every connection as soon as it is there, for a while; then it lets them be."""
    await context.connect()
    await subscribed(context, ACKING)
    await context.op("publish", body=text("a"), **PUBLISH)
    context.broker.faults.add(rst(on="accept"))
    context.kill("rst")
    call = context.begin("publish", 20.0, body=text("b"), **PUBLISH)
    await context.sleep(3)
    context.calm()
    await context.ended([call])
    await watched(context, "last")
    await context.finale("publish", **PROBE)
