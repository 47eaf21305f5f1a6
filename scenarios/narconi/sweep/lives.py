"""Base scripts about the life of a session: its losses and its end."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import Base, ScriptContext, base, text
from scenarios.narconi.sweep._shared import EVENTS, PROBE, PUBLISH, SETTLING, put, queues, watched


@base(role="publisher")
async def both(stage: ScriptContext) -> None:
    """All that a session can do, at the same time."""
    queues(stage, "P", "C")
    put(stage, "C", "m0", "m1")
    await stage.connect(auto_reconnect=True)
    options = {"ack": True, "limit": 2}
    await stage.op("subscribe", sub="c1", target="C", options=options, on_message=SETTLING)
    for number in range(2):
        calls = [stage.begin("publish", body=text(f"a{number}{i}"), **PUBLISH) for i in range(2)]
        calls.append(stage.begin("narc.post", target="P", body=text(f"h{number}")))
        await stage.ended(calls)
        await stage.op("narc.take", target="P")
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def closing(stage: ScriptContext) -> None:
    """A close with everything under way."""
    queues(stage, "P", "C")
    put(stage, "C", *[f"m{i}" for i in range(6)])
    await stage.connect(auto_reconnect=True)
    lazy = {**EVENTS, "sleep_ms": 100}
    await stage.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=lazy)
    await stage.op("publish", body=text("first"), **PUBLISH)
    for number in range(3):
        stage.begin("publish", body=text(f"a{number}"), **PUBLISH)
    stage.begin("narc.take", target="P")
    await stage.close()


@base(role="publisher", bends=False)
async def outage(stage: ScriptContext) -> None:
    """The server is away, and the client is closed while it waits to connect again."""
    queues(stage, "P", "C")
    await stage.connect(auto_reconnect=True)
    await stage.op("publish", body=text("a"), **PUBLISH)
    await stage.op("subscribe", sub="c1", target="C", on_message=EVENTS)
    stage.killed.update(stage.broker.engine.connections)
    stage.broker.crash()
    await stage.sleep(3)
    stage.begin("publish", body=text("b"), **PUBLISH)
    await stage.sleep(0.7)
    await stage.close()
    stage.broker.restart()
    await stage.sleep(60)


@base(role="publisher")
async def two_sessions(stage: ScriptContext) -> None:
    """Two sessions; the server resets the connections of one, and the application closes the other."""
    queues(stage)
    stage.notes.sessions = 2
    await stage.connect(auto_reconnect=True)
    await stage.op("publish", body=text("first"), **PUBLISH)
    first = set(stage.broker.engine.connections)
    await stage.connect("s2", auto_reconnect=True)
    calls = [
        stage.begin("publish", session=name, body=text(f"{name}{i}"), **PUBLISH)
        for i in range(3)
        for name in ("s1", "s2")
    ]
    await stage.ended(calls)
    for connection in first & set(stage.broker.engine.connections):
        stage.kill("rst", connection)
    await stage.op("publish", session="s2", body=text("other"), **PUBLISH)
    await stage.op("close", session="s2")
    await stage.op("publish", 8.0, body=text("mine"), **PUBLISH)
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False)
async def in_the_turn(stage: ScriptContext) -> None:
    """Ops that begin in the turn of the loop in which the connection is lost, and in those around it."""
    queues(stage)
    await stage.connect(auto_reconnect=True)
    for number in range(6):
        await stage.op("publish", 8.0, body=text(f"f{number}"), **PUBLISH)
        calls = []
        for turn in range(6):
            if turn == number:
                stage.kill("rst" if number % 2 else "fin")
            calls.append(stage.begin("publish", 8.0, body=text(f"{number}-{turn}"), **PUBLISH))
            await stage.sleep(0)
        await stage.ended(calls)
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False)
async def stopped(stage: ScriptContext) -> None:
    """The process is stopped for a while, again and again."""
    queues(stage, "P", "C")
    await stage.connect(auto_reconnect=True)
    await stage.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    for number in range(3):
        await stage.op("publish", body=text(f"a{number}"), **PUBLISH)
        await stage.op("narc.post", target="P", body=text(f"h{number}"))
        await stage.sleep(1)
        await stage.stand_still(6)
        await stage.sleep(1)
        put(stage, "C", f"m{number}")
    await stage.op("publish", body=text("awake"), **PUBLISH)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer", bends=False)
async def herd(stage: ScriptContext) -> None:
    """Several sessions, and a server that is away again and again."""
    stage.notes.sessions = stage.notes.crowd = 3
    queues(stage, "P", "C1", "C2", "C3")
    for number in (1, 2, 3):
        await stage.connect(f"s{number}", auto_reconnect=True)
        ordered: dict[str, Any] = {"target": f"C{number}", "options": {"ack": True}}
        await stage.op("subscribe", session=f"s{number}", sub=f"c{number}", on_message=SETTLING, **ordered)
    for _ in range(3):
        await stage.outage(4)
        await stage.sleep(30)
    for number in (2, 3):
        await stage.op("close", session=f"s{number}")
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False)
async def rounds(stage: ScriptContext) -> None:
    """Losses and recoveries: what the client holds must not grow."""
    queues(stage, "P", "C")
    await stage.connect(auto_reconnect=True)
    options = {"ack": True}
    await stage.op("subscribe", sub="c1", target="C", options=options, on_message=SETTLING)
    stage.mark("rounds")
    for number in range(6):
        await stage.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        stage.kill("rst")
        await stage.sleep(30)
        await stage.op("narc.post", target="P", body=text(f"h{number}"))
        await stage.op("stats")
    await stage.finale("publish", **PROBE)


def raising(callback: str, times: int) -> Base:
    """Callbacks of the application that fail, and messages after them."""

    async def script(stage: ScriptContext) -> None:
        queues(stage, "P", "C")
        stage.notes.raises = True
        await stage.connect(auto_reconnect=True)
        await stage.op("subscribe", sub="c1", target="C", on_message=EVENTS)
        await stage.op("raise_next", callback=callback, times=times)
        put(stage, "C", *[f"m{i}" for i in range(4)])
        await stage.sleep(1)
        stage.kill()
        await stage.sleep(5)
        await stage.op("publish", 8.0, body=text("a"), **PUBLISH)
        await stage.op("raise_next", callback=callback, times=0)
        await watched(stage, "C", "last")
        await stage.finale("publish", **PROBE)

    return base(role="publisher", needs=["callback_raise"], bends=False, name=f"raising-{callback}-{times}")(
        script
    )


RAISING = [raising(callback, times) for callback in ("session", "message", "error") for times in (1, 2)]
