"""Base scripts about the life of a session: its beginning, its losses and its end."""

from __future__ import annotations

from conformance.run.bases import Base, ScriptContext, base, text
from fakebrokers.blazingmq.codec import HEADER_SIZE
from fakebrokers.blazingmq.codes import Category
from fakebrokers.faults import corrupt, reply, silent
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
async def plain(context: ScriptContext) -> None:
    """Without reconnecting: state and ops after a loss."""
    put(context, "m0", "m1")
    await context.connect(auto_reconnect=False)
    await writer(context)
    await reader(context, "c1", R, SETTLED)
    await context.ended([context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(3)])
    await context.op("state")
    context.kill("fin")
    await context.sleep(0.5)
    await context.op("state")
    for number in range(2):
        await context.op("publish", body=text(f"z{number}"), **PUBLISH)
        await writer(context, PRIORITY + f"late{number}")
        await context.op("bmq.configure_queue", target=R, options={"max_unconfirmed_messages": 3})
    await context.op("bmq.close_queue", target=R)
    await context.finale()


@base(role="publisher", server=RARELY)
async def closing(context: ScriptContext) -> None:
    """A close with everything under way, and a second one."""
    put(context, *[f"m{i}" for i in range(8)])
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, {**SETTLED, "sleep_ms": 100})
    for number in range(3):
        context.begin("publish", body=text(f"a{number}"), **PUBLISH)
    context.begin("bmq.open_queue", target=PRIORITY + "x", uri=PRIORITY + "x", flags=["write"])
    context.begin("bmq.configure_queue", target=R, options={"max_unconfirmed_messages": 3})
    await context.close()
    await context.op("publish", body=text("behind"), **PUBLISH)
    await context.op("close", 5.0)


@base(role="publisher", server=RARELY, injections=False)
async def outage(context: ScriptContext) -> None:
    """The broker is away, and the client is closed while it waits to connect again."""
    await context.connect()
    await writer(context)
    await context.op("publish", body=text("a"), **PUBLISH)
    context.killed.update(context.broker.engine.connections)
    context.broker.crash()
    await context.sleep(3)
    context.begin("publish", body=text("b"), **PUBLISH)
    await context.sleep(0.7)
    await context.close()
    context.broker.restart()
    await context.sleep(60)


@base(role="publisher", server=RARELY, handshake=True)
async def turned_away(context: ScriptContext) -> None:
    """Negotiations that are refused or not answered, then one that works."""
    endpoints = [context.endpoint]
    context.notes.reconnects = True
    context.broker.faults.add(reply(int(Category.E_REFUSED), kind="clientIdentity"))
    for options in ({}, {"auto_reconnect": False}):
        await context.op("connect", 5.0, endpoints=endpoints, options=options)
        await writer(context)
    context.broker.faults.clear()
    context.notes.reconnects = None
    await context.connect()
    await writer(context)
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def unreadable_welcome(context: ScriptContext) -> None:
    """The broker's answer to the negotiation cannot be read; the next one can."""
    context.notes.reconnects = True
    garbled = corrupt(at=HEADER_SIZE, length=8, kind="brokerResponse", direction="out")
    context.broker.faults.add(garbled)
    await context.op("connect", 5.0, endpoints=[context.endpoint], options={})
    context.broker.faults.clear()
    context.notes.reconnects = None
    await context.connect()
    await writer(context)
    await finale(context)


@base(role="publisher", server=RARELY)
async def two_sessions(context: ScriptContext) -> None:
    """Two sessions; the broker resets the connection of one, and the application closes the other."""
    context.notes.sessions = 2
    other = PRIORITY + "other-kept"
    await context.connect()
    first = set(context.broker.engine.connections)
    await context.connect("s2")
    await writer(context)
    await writer(context, other, "s2")
    pairs = (("s1", K), ("s2", other))
    calls = [
        context.begin("publish", session=name, target=uri, body=text(f"{name}{i}"), wait=True)
        for i in range(3)
        for name, uri in pairs
    ]
    await context.ended(calls)
    for connection in first & set(context.broker.engine.connections):
        context.kill("rst", connection)
    await context.op("publish", session="s2", target=other, body=text("other"), wait=True)
    await context.op("close", session="s2")
    await context.op("publish", 8.0, body=text("mine"), **PUBLISH)
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def in_the_turn(context: ScriptContext) -> None:
    """Ops that begin in the turn of the loop in which the connection is lost, and in those around it."""
    await context.connect()
    await writer(context)
    await context.op("publish", body=text("first"), **PUBLISH)
    for number in range(8):
        calls = []
        for turn in range(6):
            if turn == number % 6:
                context.kill("rst" if number % 2 else "fin")
            calls.append(context.begin("publish", 8.0, body=text(f"{number}/{turn}"), **PUBLISH))
            uri = PRIORITY + f"q{number}.{turn}"
            calls.append(context.begin("bmq.open_queue", 8.0, target=uri, uri=uri, flags=["write"]))
            await context.sleep(0)
        await context.ended(calls)
        await context.sleep(6)
    await finale(context)


def raising(callback: str, times: int, kills: int) -> Base:
    """Callbacks that fail while connections are lost again and again."""

    async def script(context: ScriptContext) -> None:
        context.notes.raises = True
        put(context, *[f"m{i}" for i in range(5)])
        await context.connect()
        await writer(context)
        await reader(context, "c1", R, {**EVENTS, "sleep_ms": 20})
        for number in range(kills):
            await context.op("raise_next", callback=callback, times=times)
            context.kill()
            await context.sleep(8)
            await context.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        await context.op("raise_next", callback=callback, times=0)
        await watched(context, "m16")
        await finale(context)

    name = f"raising-{callback}-{times}-{kills}"
    return base(role="publisher", server=RARELY, needs=["callback_raise"], injections=False, name=name)(
        script
    )


RAISING = [
    raising(callback, times, kills)
    for callback in ("session", "message", "error")
    for times in (1, 3)
    for kills in (1, 2)
]


def beating(profile: str, interval_ms: int, missed: int, phase: str) -> Base:
    """Signs of life as the broker wants them; then it may fall silent."""

    async def script(context: ScriptContext) -> None:
        put(context, "m0", "m1")
        await context.connect(auto_reconnect=False)
        await writer(context)
        await reader(context, "c1", R, {**SETTLED, "sleep_ms": 4 * interval_ms})
        await context.op("publish", body=text("x"), **PUBLISH)
        if phase != "idle":
            for name in list(context.broker.engine.connections):
                context.broker.faults.add(silent(on="idle", after_s=0.05, connection=name))
                context.killed.add(name)
        beats_s = (missed + 5) * interval_ms / 1000 or 10.0
        for number in range(20):
            if phase == "busy":
                context.begin("publish", 1.0, body=text(f"y{number}"), **PUBLISH)
            await context.sleep(beats_s / 20)
        await context.op("state")
        await context.finale()

    server = {"profile": profile, "heartbeat_s": interval_ms / 1000, "max_missed": missed, "heartbeats": True}
    name = f"beats-{profile}-{interval_ms}-{missed}-{phase}"
    return base(role="publisher", server=server, injections=False, name=name)(script)


BEATING = [
    beating(profile, interval_ms, missed, phase)
    for profile, interval_ms, missed in (
        ("real", 1000, 1), ("real", 3000, 10), ("seed", 2000, 3), ("real", 0, 10), ("real", 3000, 0)
    )
    for phase in ("idle", "deaf", "busy")
]  # fmt: skip


@base(role="publisher", server=RARELY, injections=False)
async def stopped(context: ScriptContext) -> None:
    """The process is stopped for a while, again and again, for less time than a silent peer is given."""
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, SETTLED)
    for number in range(3):
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.sleep(1)
        await context.stand_still(6)
        await context.sleep(1)
        put(context, f"m{number}")
    await context.op("publish", body=text("awake"), **PUBLISH)
    await watched(context, "m")
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def herd(context: ScriptContext) -> None:
    """Several sessions, and a broker that is away again and again."""
    context.notes.sessions = context.notes.crowd = 3
    for name in ("s1", "s2", "s3"):
        await context.connect(name)
        await writer(context, PRIORITY + f"{name}-kept" if name != "s1" else K, name)
    for _ in range(3):
        await context.outage(4)
        await context.sleep(40)
    for name in ("s2", "s3"):
        await context.op("close", session=name)
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def rounds(context: ScriptContext) -> None:
    """Loss after loss, with a look at what the client holds once it has recovered."""
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, SETTLED)
    context.mark("rounds")
    for number in range(6):
        await context.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        put(context, f"m{number}")
        await context.sleep(20)
        await context.op("stats")
        context.kill()
        await context.sleep(10)
    await watched(context, "m")
    await finale(context)
