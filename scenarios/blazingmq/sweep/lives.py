"""Base scripts about the life of a session: its beginning, its losses and its end."""

from __future__ import annotations

from conformance.run.bases import Base, ScriptContext, base, text
from fakebrokers.blazingmq.codes import Category
from fakebrokers.faults import reply, silent
from scenarios.blazingmq.sweep._shared import (
    EVENTS,
    PRIORITY,
    PUBLISH,
    RARELY,
    SETTLED,
    K,
    R,
    finale,
    put,
    reader,
    watched,
    writer,
)


@base(role="publisher", server=RARELY, handshake=True)
async def plain(stage: ScriptContext) -> None:
    """Without reconnecting: state and ops after a loss."""
    put(stage, "m0", "m1")
    await stage.connect(auto_reconnect=False)
    await writer(stage)
    await reader(stage, "c1", R, SETTLED)
    await stage.ended([stage.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(3)])
    await stage.op("state")
    stage.kill("fin")
    await stage.sleep(0.5)
    await stage.op("state")
    for number in range(2):
        await stage.op("publish", body=text(f"z{number}"), **PUBLISH)
        await writer(stage, PRIORITY + f"late{number}")
    await stage.finale()


@base(role="publisher", server=RARELY)
async def closing(stage: ScriptContext) -> None:
    """A close with everything under way, and a second one."""
    put(stage, *[f"m{i}" for i in range(8)])
    await stage.connect()
    await writer(stage)
    await reader(stage, "c1", R, {**SETTLED, "sleep_ms": 100})
    for number in range(3):
        stage.begin("publish", body=text(f"a{number}"), **PUBLISH)
    stage.begin("bmq.open_queue", target=PRIORITY + "x", uri=PRIORITY + "x", flags=["write"])
    stage.begin("bmq.configure_queue", target=R, options={"max_unconfirmed_messages": 3})
    await stage.close()
    await stage.op("publish", body=text("behind"), **PUBLISH)
    await stage.op("close", 5.0)


@base(role="publisher", server=RARELY, bends=False)
async def outage(stage: ScriptContext) -> None:
    """The broker is away, and the client is closed while it waits to connect again."""
    await stage.connect()
    await writer(stage)
    await stage.op("publish", body=text("a"), **PUBLISH)
    stage.killed.update(stage.broker.engine.connections)
    stage.broker.crash()
    await stage.sleep(3)
    stage.begin("publish", body=text("b"), **PUBLISH)
    await stage.sleep(0.7)
    await stage.close()
    stage.broker.restart()
    await stage.sleep(60)


@base(role="publisher", server=RARELY, handshake=True)
async def turned_away(stage: ScriptContext) -> None:
    """Negotiations that are refused or not answered, then one that works."""
    endpoints = [stage.endpoint]
    stage.notes.reconnects = True
    stage.broker.faults.add(reply(int(Category.E_REFUSED), kind="clientIdentity"))
    for options in ({}, {"auto_reconnect": False}):
        await stage.op("connect", 5.0, endpoints=endpoints, options=options)
        await writer(stage)
    stage.broker.faults.clear()
    stage.notes.reconnects = None
    await stage.connect()
    await writer(stage)
    await finale(stage)


@base(role="publisher", server=RARELY)
async def two_sessions(stage: ScriptContext) -> None:
    """Two sessions; the broker resets the connection of one, and the application closes the other."""
    stage.notes.sessions = 2
    other = PRIORITY + "other-kept"
    await stage.connect()
    first = set(stage.broker.engine.connections)
    await stage.connect("s2")
    await writer(stage)
    await writer(stage, other, "s2")
    pairs = (("s1", K), ("s2", other))
    calls = [
        stage.begin("publish", session=name, target=uri, body=text(f"{name}{i}"), wait=True)
        for i in range(3)
        for name, uri in pairs
    ]
    await stage.ended(calls)
    for connection in first & set(stage.broker.engine.connections):
        stage.kill("rst", connection)
    await stage.op("publish", session="s2", target=other, body=text("other"), wait=True)
    await stage.op("close", session="s2")
    await stage.op("publish", 8.0, body=text("mine"), **PUBLISH)
    await finale(stage)


@base(role="publisher", server=RARELY, bends=False)
async def in_the_turn(stage: ScriptContext) -> None:
    """Ops that begin in the turn of the loop in which the connection is lost, and in those around it."""
    await stage.connect()
    await writer(stage)
    await stage.op("publish", body=text("first"), **PUBLISH)
    for number in range(8):
        calls = []
        for turn in range(6):
            if turn == number % 6:
                stage.kill("rst" if number % 2 else "fin")
            calls.append(stage.begin("publish", 8.0, body=text(f"{number}/{turn}"), **PUBLISH))
            uri = PRIORITY + f"q{number}.{turn}"
            calls.append(stage.begin("bmq.open_queue", 8.0, target=uri, uri=uri, flags=["write"]))
            await stage.sleep(0)
        await stage.ended(calls)
        await stage.sleep(6)
    await finale(stage)


def raising(callback: str, times: int, kills: int) -> Base:
    """Callbacks that fail while connections are lost again and again."""

    async def script(stage: ScriptContext) -> None:
        stage.notes.raises = True
        put(stage, *[f"m{i}" for i in range(5)])
        await stage.connect()
        await writer(stage)
        await reader(stage, "c1", R, {**EVENTS, "sleep_ms": 20})
        for number in range(kills):
            await stage.op("raise_next", callback=callback, times=times)
            stage.kill()
            await stage.sleep(8)
            await stage.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        await stage.op("raise_next", callback=callback, times=0)
        await watched(stage, "m16")
        await finale(stage)

    name = f"raising-{callback}-{times}-{kills}"
    return base(role="publisher", server=RARELY, needs=["callback_raise"], bends=False, name=name)(script)


RAISING = [
    raising(callback, times, kills)
    for callback in ("session", "message", "error")
    for times in (1, 3)
    for kills in (1, 2)
]


def beating(profile: str, interval_ms: int, missed: int, phase: str) -> Base:
    """Signs of life as the broker wants them; then it may fall silent."""

    async def script(stage: ScriptContext) -> None:
        put(stage, "m0", "m1")
        await stage.connect(auto_reconnect=False)
        await writer(stage)
        await reader(stage, "c1", R, {**SETTLED, "sleep_ms": 4 * interval_ms})
        await stage.op("publish", body=text("x"), **PUBLISH)
        if phase != "idle":
            for name in list(stage.broker.engine.connections):
                stage.broker.faults.add(silent(on="idle", after_s=0.05, connection=name))
                stage.killed.add(name)
        beats_s = (missed + 5) * interval_ms / 1000 or 10.0
        for number in range(20):
            if phase == "busy":
                stage.begin("publish", 1.0, body=text(f"y{number}"), **PUBLISH)
            await stage.sleep(beats_s / 20)
        await stage.op("state")
        await stage.finale()

    server = {"profile": profile, "heartbeat_s": interval_ms / 1000, "max_missed": missed, "heartbeats": True}
    name = f"beats-{profile}-{interval_ms}-{missed}-{phase}"
    return base(role="publisher", server=server, bends=False, name=name)(script)


BEATING = [
    beating(profile, interval_ms, missed, phase)
    for profile, interval_ms, missed in (
        ("real", 1000, 1), ("real", 3000, 10), ("seed", 2000, 3), ("real", 0, 10), ("real", 3000, 0)
    )
    for phase in ("idle", "deaf", "busy")
]  # fmt: skip


@base(role="publisher", server=RARELY, bends=False)
async def stopped(stage: ScriptContext) -> None:
    """The process is stopped for a while, again and again, for less time than a silent peer is given."""
    await stage.connect()
    await writer(stage)
    await reader(stage, "c1", R, SETTLED)
    for number in range(3):
        await stage.op("publish", body=text(f"a{number}"), **PUBLISH)
        await stage.sleep(1)
        await stage.stand_still(6)
        await stage.sleep(1)
        put(stage, f"m{number}")
    await stage.op("publish", body=text("awake"), **PUBLISH)
    await watched(stage, "m")
    await finale(stage)


@base(role="publisher", server=RARELY, bends=False)
async def herd(stage: ScriptContext) -> None:
    """Several sessions, and a broker that is away again and again."""
    stage.notes.sessions = stage.notes.crowd = 3
    for name in ("s1", "s2", "s3"):
        await stage.connect(name)
        await writer(stage, PRIORITY + f"{name}-kept" if name != "s1" else K, name)
    for _ in range(3):
        await stage.outage(4)
        await stage.sleep(40)
    for name in ("s2", "s3"):
        await stage.op("close", session=name)
    await finale(stage)


@base(role="publisher", server=RARELY, bends=False)
async def rounds(stage: ScriptContext) -> None:
    """Loss after loss, with a look at what the client holds once it has recovered."""
    await stage.connect()
    await writer(stage)
    await reader(stage, "c1", R, SETTLED)
    stage.mark("rounds")
    for number in range(6):
        await stage.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        put(stage, f"m{number}")
        await stage.sleep(20)
        await stage.op("stats")
        stage.kill()
        await stage.sleep(10)
    await watched(stage, "m")
    await finale(stage)
