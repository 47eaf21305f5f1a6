"""Base scripts about the life of a session: its losses and its end."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import Base, ScriptContext, base, text
from fakebrokers.faults import drop
from scenarios.narconi.sweep._shared import EVENTS, PROBE, PUBLISH, SETTLING, put, queues, watched


@base(role="publisher")
async def both(context: ScriptContext) -> None:
    """All that a session can do, at the same time."""
    queues(context, "P", "C")
    put(context, "C", "m0", "m1")
    await context.connect(auto_reconnect=True)
    options = {"ack": True, "limit": 2}
    await context.op("subscribe", sub="c1", target="C", options=options, on_message=SETTLING)
    for number in range(2):
        calls = [context.begin("publish", body=text(f"a{number}{i}"), **PUBLISH) for i in range(2)]
        calls.append(context.begin("narc.post", target="P", body=text(f"h{number}")))
        await context.ended(calls)
        await context.op("narc.take", target="P")
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def closing(context: ScriptContext) -> None:
    """A close with everything under way."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(6)])
    await context.connect(auto_reconnect=True)
    lazy = {**EVENTS, "sleep_ms": 100}
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=lazy)
    await context.op("publish", body=text("first"), **PUBLISH)
    for number in range(3):
        context.begin("publish", body=text(f"a{number}"), **PUBLISH)
    context.begin("narc.take", target="P")
    await context.close()


@base(role="publisher", injections=False)
async def close_unanswered(context: ScriptContext) -> None:
    """A close of connections whose server takes no notice of their Close frames, and goes on."""
    queues(context, "P", "C")
    await context.connect(auto_reconnect=True)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=EVENTS)
    await context.op("publish", body=text("first"), **PUBLISH)
    context.broker.faults.add(drop(kind="WsClose", direction="in"))
    await context.close(timeout=10.0)


@base(role="publisher", injections=False)
async def outage(context: ScriptContext) -> None:
    """The server is away, and the client is closed while it waits to connect again."""
    queues(context, "P", "C")
    await context.connect(auto_reconnect=True)
    await context.op("publish", body=text("a"), **PUBLISH)
    await context.op("subscribe", sub="c1", target="C", on_message=EVENTS)
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
    queues(context)
    context.notes.sessions = 2
    await context.connect(auto_reconnect=True)
    await context.op("publish", body=text("first"), **PUBLISH)
    first = set(context.broker.engine.connections)
    await context.connect("s2", auto_reconnect=True)
    calls = [
        context.begin("publish", session=name, body=text(f"{name}{i}"), **PUBLISH)
        for i in range(3)
        for name in ("s1", "s2")
    ]
    await context.ended(calls)
    for connection in first & set(context.broker.engine.connections):
        context.kill("rst", connection)
    await context.op("publish", session="s2", body=text("other"), **PUBLISH)
    await context.op("close", session="s2")
    await context.op("publish", 8.0, body=text("mine"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def in_the_turn(context: ScriptContext) -> None:
    """Ops that begin in the turn of the loop in which the connection is lost, and in those around it."""
    queues(context)
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


@base(role="publisher", injections=False)
async def stopped(context: ScriptContext) -> None:
    """The process is stopped for a while, again and again."""
    queues(context, "P", "C")
    await context.connect(auto_reconnect=True)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    for number in range(3):
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.op("narc.post", target="P", body=text(f"h{number}"))
        await context.sleep(1)
        await context.stand_still(6)
        await context.sleep(1)
        put(context, "C", f"m{number}")
    await context.op("publish", body=text("awake"), **PUBLISH)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def herd(context: ScriptContext) -> None:
    """Several sessions, and a server that is away again and again."""
    context.notes.sessions = context.notes.crowd = 3
    queues(context, "P", "C1", "C2", "C3")
    for number in (1, 2, 3):
        await context.connect(f"s{number}", auto_reconnect=True)
        ordered: dict[str, Any] = {"target": f"C{number}", "options": {"ack": True}}
        await context.op("subscribe", session=f"s{number}", sub=f"c{number}", on_message=SETTLING, **ordered)
    for _ in range(3):
        await context.outage(4)
        await context.sleep(30)
    for number in (2, 3):
        await context.op("close", session=f"s{number}")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def rounds(context: ScriptContext) -> None:
    """Losses and recoveries: what the client holds must not grow."""
    queues(context, "P", "C")
    await context.connect(auto_reconnect=True)
    options = {"ack": True}
    await context.op("subscribe", sub="c1", target="C", options=options, on_message=SETTLING)
    context.mark("rounds")
    for number in range(6):
        await context.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        context.kill("rst")
        await context.sleep(30)
        await context.op("narc.post", target="P", body=text(f"h{number}"))
        await context.op("stats")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def at_rest(context: ScriptContext) -> None:
    """The same ops again and again: what the client holds after them must not grow."""
    queues(context, "P", "C")
    await context.connect(auto_reconnect=True)
    context.mark("rounds")
    for number in range(6):
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.op("publish", target="nowhere", body=text(f"n{number}"), wait=True)
        await context.op("narc.ensure_queue", target=f"N{number}")
        await context.op("narc.post", target="P", body=text(f"h{number}"))
        await context.op("narc.take", target="P")
        await context.op("narc.delete_queue", target=f"N{number}")
        await context.op("subscribe", sub=f"c{number}", target="C", on_message=EVENTS)
        put(context, "C", f"m{number}")
        await context.sleep(0.5)
        await context.op("unsubscribe", sub=f"c{number}")
        await context.sleep(2)
        await context.op("stats")
    await context.finale("publish", **PROBE)


def raising(callback: str, times: int) -> Base:
    """Callbacks of the application that fail, and messages after them."""

    async def script(context: ScriptContext) -> None:
        queues(context, "P", "C")
        context.notes.raises = True
        await context.connect(auto_reconnect=True)
        await context.op("subscribe", sub="c1", target="C", on_message=EVENTS)
        await context.op("raise_next", callback=callback, times=times)
        put(context, "C", *[f"m{i}" for i in range(4)])
        await context.sleep(1)
        context.kill()
        await context.sleep(5)
        await context.op("publish", 8.0, body=text("a"), **PUBLISH)
        await context.op("raise_next", callback=callback, times=0)
        await watched(context, "C", "last")
        await context.finale("publish", **PROBE)

    return base(
        role="publisher", needs=["callback_raise"], injections=False, name=f"raising-{callback}-{times}"
    )(script)


RAISING = [raising(callback, times) for callback in ("session", "message", "error") for times in (1, 2)]
