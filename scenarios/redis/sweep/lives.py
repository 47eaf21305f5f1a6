"""Base scripts about the life of a session: its losses, its callbacks and its end."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import Base, ScriptContext, base, text
from fakebrokers.faults import latency
from scenarios.redis.sweep._shared import EVENTS, GET, INCR, POP, PROBE, PUBLISH, put, subscribed, watched


@base(role="consumer")
async def both(context: ScriptContext) -> None:
    """All that a session can do, at the same time."""
    await context.connect(auto_reconnect=True)
    await subscribed(context)
    for number in range(2):
        calls = [context.begin("publish", body=text(f"a{number}{i}"), **PUBLISH) for i in range(2)]
        calls.append(context.begin("redis.call", words=INCR))
        put(context, "C", f"m{number}")
        await context.ended(calls)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def closing(context: ScriptContext) -> None:
    """A close with everything under way."""
    await context.connect(auto_reconnect=True)
    await subscribed(context, on_message={**EVENTS, "sleep_ms": 100})
    put(context, "C", *[f"m{i}" for i in range(6)])
    for number in range(3):
        context.begin("publish", body=text(f"a{number}"), **PUBLISH)
    context.begin("redis.call", words=GET)
    context.begin("redis.call", words=POP)
    await context.close()


@base(role="consumer", injections=False)
async def outage(context: ScriptContext) -> None:
    """The server is away, and the client is closed while it waits to connect again."""
    await context.connect(auto_reconnect=True)
    await subscribed(context)
    await context.op("publish", body=text("a"), **PUBLISH)
    context.notes.unreachable = True
    context.killed.update(context.broker.engine.connections)
    context.broker.crash()
    await context.sleep(3)
    context.begin("publish", body=text("b"), **PUBLISH)
    await context.sleep(0.7)
    await context.close()
    context.broker.restart()
    await context.sleep(60)


@base(role="publisher")
async def two_sessions(context: ScriptContext) -> None:
    """Two sessions; the server resets the connections of one, and the application closes the other."""
    context.notes.sessions = 2
    await context.connect(auto_reconnect=True)
    await context.op("publish", body=text("first"), **PUBLISH)
    first = set(context.broker.engine.connections)
    await context.connect("s2", auto_reconnect=True)
    await context.ended(
        [
            context.begin("publish", session=name, body=text(f"{name}{i}"), **PUBLISH)
            for i in range(3)
            for name in ("s1", "s2")
        ]
    )
    for connection in first & set(context.broker.engine.connections):
        context.kill("rst", connection)
    await context.op("publish", session="s2", body=text("other"), **PUBLISH)
    await context.op("close", session="s2")
    await context.op("publish", 8.0, body=text("mine"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def in_the_turn(context: ScriptContext) -> None:
    """Ops that begin in the turn of the loop in which the connection is lost, and in those around it."""
    await context.connect(auto_reconnect=True)
    for number in range(6):
        await context.op("publish", 8.0, body=text(f"f{number}"), **PUBLISH)
        calls = []
        for turn in range(6):
            if turn == number:
                context.kill("rst" if number % 2 else "fin")
            calls.append(context.begin("publish", 8.0, body=text(f"{number}-{turn}"), **PUBLISH))
            await context.sleep(0)
        await context.ended(calls)
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def stopped(context: ScriptContext) -> None:
    """The process is stopped for a while, again and again."""
    await context.connect(auto_reconnect=True)
    await subscribed(context)
    for number in range(3):
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.sleep(1)
        await context.stand_still(6)
        await context.sleep(1)
        put(context, "C", f"m{number}")
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def herd(context: ScriptContext) -> None:
    """Several sessions, and a server that is away again and again."""
    context.notes.sessions = context.notes.crowd = 3
    for number in (1, 2, 3):
        await context.connect(f"s{number}", auto_reconnect=True)
        await subscribed(context, f"C{number}", f"c{number}", session=f"s{number}")
    for _ in range(3):
        await context.outage(4)
        await context.sleep(30)
    for number in (2, 3):
        await context.op("close", session=f"s{number}")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def rounds(context: ScriptContext) -> None:
    """Losses and recoveries: what the client holds must not grow."""
    await context.connect(auto_reconnect=True)
    await subscribed(context)
    context.mark("rounds")
    for number in range(6):
        await context.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        context.kill("rst")
        await context.sleep(30)
        await context.op("stats")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def at_rest(context: ScriptContext) -> None:
    """The same ops again and again: what the client holds after them must not grow."""
    await context.connect(auto_reconnect=True)
    context.mark("rounds")
    for number in range(6):
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.op("redis.call", words=INCR)
        await context.op("redis.call", words=POP)
        await subscribed(context, sub=f"c{number}")
        put(context, "C", f"m{number}")
        await context.sleep(0.5)
        await context.op("unsubscribe", sub=f"c{number}")
        await context.sleep(2)
        await context.op("stats")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False, needs=["reentrant"])
async def inside(context: ScriptContext) -> None:
    """Callbacks that ask, and one that ends its own subscription."""
    await context.connect(auto_reconnect=True)
    ops: list[dict[str, Any]] = [
        {"op": "redis.call", "args": {"session": "s1", "words": INCR}, "timeout_ms": 2000},
        {"op": "state", "args": {"session": "s1"}, "timeout_ms": 2000},
    ]
    await subscribed(context, on_message={**EVENTS, "do": ops})
    put(context, "C", "m0", "m1")
    await context.op("publish", body=text("outer"), **PUBLISH)
    await context.sleep(2)
    end = {"op": "unsubscribe", "args": {"sub": "c2"}, "timeout_ms": 2000}
    await subscribed(context, "D", "c2", on_message={**EVENTS, "do": [end]})
    put(context, "D", "n0")
    await context.sleep(2)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="caller", injections=False)
async def hasty(context: ScriptContext) -> None:
    """Ops that get no time, or nearly none, between others that get enough."""
    await context.connect(auto_reconnect=True)
    context.broker.faults.add(latency(1.0, direction="out"))
    for number, timeout in enumerate((0.0, 0.001, 2.0, 0.0)):
        calls = [
            context.begin("publish", timeout, body=text(f"a{number}"), **PUBLISH),
            context.begin("redis.call", timeout, words=INCR),
            context.begin("publish", body=text(f"b{number}"), **PUBLISH),
        ]
        await context.ended(calls)
        await context.sleep(2)
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["abort"])
async def aborted(context: ScriptContext) -> None:
    """The application drops its session while ops are under way, and connects anew under the same name."""
    await context.connect(auto_reconnect=True)
    await subscribed(context)
    name = context.broker.faults.add(latency(0.5, direction="out"))
    calls = [context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(2)]
    calls.append(context.begin("redis.call", words=GET))
    await context.sleep(0.1)
    await context.op("abort")
    await context.ended(calls)
    context.broker.faults.remove(name)
    await context.sleep(5)
    await context.connect(auto_reconnect=True)
    await subscribed(context, "D", "c2")
    await watched(context, "last", "D")
    await context.finale("publish", **PROBE)


def raising(callback: str, times: int) -> Base:
    """Callbacks of the application that fail, and messages after them."""

    async def script(context: ScriptContext) -> None:
        context.notes.raises = True
        await context.connect(auto_reconnect=True)
        await subscribed(context)
        await context.op("raise_next", callback=callback, times=times)
        put(context, "C", *[f"m{i}" for i in range(4)])
        await context.sleep(1)
        context.kill()
        await context.sleep(5)
        await context.op("publish", 8.0, body=text("a"), **PUBLISH)
        await context.op("raise_next", callback=callback, times=0)
        await watched(context, "last")
        await context.finale("publish", **PROBE)

    return base(
        role="consumer", needs=["callback_raise"], injections=False, name=f"raising-{callback}-{times}"
    )(script)


RAISING = [raising("message", 2), raising("session", 9)]
