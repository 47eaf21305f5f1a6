"""Base scripts about the life of a session."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import Base, ScriptContext, base, text
from fakebrokers.faults import rst, silent
from fakebrokers.mqtt.faults import refuse_login
from scenarios.mqtt.sweep._shared import EVENTS, PROBE, PUBLISH, put, subscribed, watched

OTHER: dict[str, Any] = {**PUBLISH, "target": "orders/other"}


@base(role="publisher")
async def both(context: ScriptContext) -> None:
    """One session publishes and listens."""
    await context.connect(will={"target": "gone", "body": text("gone"), "qos": 1})
    await subscribed(context)
    for number in range(2):
        put(context, f"m{number}")
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def closing(context: ScriptContext) -> None:
    """A close with everything under way."""
    await context.connect()
    await subscribed(context, on_message={**EVENTS, "sleep_ms": 100})
    put(context, *[f"m{i}" for i in range(4)])
    for number in range(3):
        context.begin("publish", body=text(f"a{number}"), qos=1 + number % 2, **PUBLISH)
    await context.close()
    await context.op("publish", body=text("z"), **PUBLISH)


@base(role="publisher", injections=False)
async def outage(context: ScriptContext) -> None:
    """The server is away for a while, with messages under way."""
    await context.connect()
    await subscribed(context)
    await context.op("publish", body=text("a"), **PUBLISH)
    calls = [context.begin("publish", 20.0, body=text("b"), **PUBLISH)]
    await context.outage(4)
    await context.ended(calls)
    await context.sleep(10)
    await context.op("publish", body=text("c"), **PUBLISH)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def two_sessions(context: ScriptContext) -> None:
    """Two sessions; one loses its connection, the other is closed by the application."""
    context.notes.sessions = 2
    await context.connect()
    first = set(context.broker.engine.connections)
    await context.connect("s2")
    calls = [context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(2)]
    calls += [context.begin("publish", session="s2", body=text(f"b{i}"), **OTHER) for i in range(2)]
    await context.ended(calls)
    for connection in first & set(context.broker.engine.connections):
        context.kill("rst", connection)
    await context.op("publish", session="s2", body=text("other"), **OTHER)
    await context.op("close", session="s2")
    await context.sleep(5)
    await context.op("publish", body=text("mine"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def rounds(context: ScriptContext) -> None:
    """Loss after loss, with a look at what the client holds once it has recovered."""
    await context.connect()
    await subscribed(context)
    context.mark("rounds")
    for number in range(5):
        await context.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        put(context, f"m{number}")
        await context.sleep(10)
        await context.op("stats")
        context.kill()
        await context.sleep(10)
    await watched(context, "m")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def turned_away(context: ScriptContext) -> None:
    """The server ends every connection as soon as it is there, for a while; then it is not available."""
    await context.connect()
    await subscribed(context)
    name = context.broker.faults.add(rst(on="accept"))
    context.kill("rst")
    await context.sleep(3)
    context.broker.faults.remove(name)
    context.broker.faults.add(refuse_login(3, scope="run", nth=1))
    await context.sleep(15)
    await context.op("publish", body=text("b"), **PUBLISH)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def shut_out(context: ScriptContext) -> None:
    """A login that is refused at first, and after a loss for good."""
    name = context.broker.faults.add(refuse_login(5, scope="run"))
    given = {"session": "s0", "endpoints": [context.endpoint], "options": {"user": "me", "password": "no"}}
    await context.op("connect", 5.0, **given)
    context.broker.faults.remove(name)
    await context.connect()
    await context.op("publish", body=text("a"), **PUBLISH)
    context.broker.faults.add(refuse_login(5, scope="run"))
    context.kill("rst")
    await context.sleep(20)
    await context.finale()


def beating(keep_alive: int, phase: str) -> Base:
    """Signs of life as the client has ordered them; then the server may fall silent."""

    async def script(context: ScriptContext) -> None:
        await context.connect(auto_reconnect=False, keep_alive_s=keep_alive)
        await subscribed(context)
        await context.op("publish", body=text("x"), **PUBLISH)
        if phase != "idle":
            for name in list(context.broker.engine.connections):
                context.broker.faults.add(silent(on="idle", after_s=0.05, connection=name))
                context.killed.add(name)
        for number in range(20):
            if phase == "busy":
                context.begin("publish", 1.0, body=text(f"y{number}"), **PUBLISH)
            await context.sleep((keep_alive or 2) * 5 / 20)
        await context.op("state")
        await context.finale()

    return base(role="publisher", injections=False, name=f"beats-{keep_alive}-{phase}")(script)


BEATING = [beating(seconds, phase) for seconds in (2, 5, 0) for phase in ("idle", "deaf", "busy")]


@base(role="publisher", injections=False)
async def stood_still(context: ScriptContext) -> None:
    """The process is stopped for a while, twice; after that everything is as before."""
    await context.connect()
    await subscribed(context)
    for number in range(2):
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.sleep(1)
        await context.stand_still(10, stops_client=True)
        put(context, f"m{number}")
        await context.sleep(1)
    await context.op("publish", body=text("b"), **PUBLISH)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


def raising(callback: str, kills: int) -> Base:
    """Callbacks that fail while connections are lost."""

    async def script(context: ScriptContext) -> None:
        context.notes.raises = True
        await context.connect()
        await subscribed(context)
        for number in range(kills):
            await context.op("raise_next", callback=callback, times=2)
            put(context, f"m{number}")
            context.kill()
            await context.sleep(8)
            await context.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        await context.op("raise_next", callback=callback, times=0)
        await watched(context, "last")
        await context.finale("publish", **PROBE)

    name = f"raising-{callback}-{kills}"
    return base(role="publisher", needs=["callback_raise"], injections=False, name=name)(script)


RAISING = [raising(callback, kills) for callback in ("session", "message", "error") for kills in (1, 2)]
