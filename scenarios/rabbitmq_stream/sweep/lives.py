"""Base scripts about the life of a session: its beginning, its losses and its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from conformance.run.bases import Base, ScriptContext, base, text
from fakebrokers.faults import latency, reply, silent
from fakebrokers.rabbitmq_stream.codes import Code
from scenarios.rabbitmq_stream.sweep._shared import ASK, EVENTS, PROBE, PUBLISH, put, watched

STILL_S = 10.0


@base(role="publisher", handshake=True)
async def plain(stage: ScriptContext) -> None:
    """Without reconnecting: state and ops after a loss."""
    stage.broker.create_stream("S")
    put(stage, *[f"m{i}" for i in range(5)])
    await stage.connect(auto_reconnect=False)
    options = {"offset": {"type": "first"}, "credit": 3, "name": "app"}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    await stage.ended([stage.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(3)])
    await stage.op("state")
    stage.kill("fin")
    await stage.sleep(0.5)
    await stage.op("state")
    for number in range(2):
        await stage.op("publish", body=text(f"z{number}"), **PUBLISH)
        await stage.op("rmqs.query_sequence", **ASK)
    await stage.finale()


@base(role="publisher")
async def closing(stage: ScriptContext) -> None:
    """A close with everything under way."""
    stage.broker.create_stream("S")
    put(stage, *[f"m{i}" for i in range(8)])
    await stage.connect()
    options = {"offset": {"type": "first"}, "credit": 3}
    lazy = {"mode": "event", "sleep_ms": 100}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=lazy)
    for number in range(3):
        stage.begin("publish", body=text(f"a{number}"), **PUBLISH)
    stage.begin("rmqs.query_sequence", **ASK)
    await stage.close()


@base(role="publisher", bends=False)
async def outage(stage: ScriptContext) -> None:
    """The server is away, and the client is closed while it waits to connect again."""
    stage.broker.create_stream("S")
    await stage.connect()
    await stage.op("publish", body=text("a"), **PUBLISH)
    stage.killed.update(stage.broker.engine.connections)
    stage.broker.crash()
    await stage.sleep(3)
    stage.begin("publish", body=text("b"), **PUBLISH)
    await stage.sleep(0.7)
    await stage.close()
    stage.broker.restart()
    await stage.sleep(60)


@base(role="publisher", handshake=True)
async def turned_away(stage: ScriptContext) -> None:
    """Logins that are refused, then one that is not."""
    stage.broker.create_stream("S")
    stage.notes.reconnects = True
    endpoints = [stage.endpoint]
    for options in ({"password": "wrong"}, {"vhost": "nowhere"}, {"user": "nobody", "auto_reconnect": False}):
        await stage.op("connect", 5.0, endpoints=endpoints, options=options)
        await stage.op("rmqs.query_sequence", **ASK)
    stage.notes.reconnects = None
    await stage.connect()
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False)
async def challenged(stage: ScriptContext) -> None:
    """A server that asks for another round of the login, on every connection."""
    stage.broker.create_stream("S")
    challenge = {"challenge": b"prove"}
    stage.broker.faults.add(reply(Code.SASL_CHALLENGE, fields=challenge, kind="SaslAuthenticate", nth=1))
    await stage.connect()
    await stage.op("publish", body=text("a"), **PUBLISH)
    stage.kill()
    await stage.op("publish", 8.0, body=text("b"), **PUBLISH)
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def two_sessions(stage: ScriptContext) -> None:
    """Two sessions; the server resets the connections of one, and the application closes the other."""
    stage.broker.create_stream("S")
    stage.notes.sessions = 2
    await stage.connect()
    first = set(stage.broker.engine.connections)
    await stage.connect("s2")
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


@base(role="publisher", server={"profile": "3.10"}, handshake=True)
async def older(stage: ScriptContext) -> None:
    """A server of an older version, which does not know all commands."""
    stage.broker.create_stream("S")
    await stage.connect()
    options = {"offset": {"type": "first"}, "credit": 2}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    await stage.ended([stage.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(3)])
    await watched(stage, "m")
    await stage.finale("publish", **PROBE)


@base(role="publisher", server={"nodes": 3})
async def nodes(stage: ScriptContext) -> None:
    """Several nodes: the leader moves, is gone for a while, and comes back."""
    stage.broker.create_stream("S")
    put(stage, "m0", "m1")
    stage.broker.move_leader("S", 2)
    await stage.connect()
    options = {"offset": {"type": "first"}, "credit": 2}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    named = {**PUBLISH, "name": "p"}
    await stage.ended([stage.begin("publish", body=text(f"a{i}"), **named) for i in range(3)])
    stage.broker.move_leader("S", 3)
    await stage.ended([stage.begin("publish", 8.0, body=text(f"b{i}"), **named) for i in range(2)])
    stage.broker.move_leader("S", None)
    calls = [stage.begin("publish", 8.0, body=text(f"c{i}"), **named) for i in range(2)]
    await stage.sleep(3)
    stage.broker.move_leader("S", 1)
    await stage.ended(calls)
    await watched(stage, "m2")
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False)
async def in_the_turn(stage: ScriptContext) -> None:
    """Ops that begin in the turn of the loop in which the connection is lost, and in those around it."""
    stage.broker.create_stream("S")
    await stage.connect()
    await stage.op("publish", body=text("first"), **PUBLISH)
    for number in range(8):
        calls = []
        for turn in range(6):
            if turn == number % 6:
                stage.kill("rst" if number % 2 else "fin")
            calls.append(stage.begin("publish", 8.0, body=text(f"{number}/{turn}"), **PUBLISH))
            calls.append(stage.begin("rmqs.query_sequence", 8.0, **ASK))
            await stage.sleep(0)
        await stage.ended(calls)
        await stage.sleep(6)
    await stage.finale("publish", **PROBE)


def raising(callback: str, times: int, kills: int) -> Base:
    """Callbacks that fail while connections are lost again and again."""

    async def script(stage: ScriptContext) -> None:
        stage.broker.create_stream("S")
        stage.notes.raises = True
        put(stage, *[f"m{i}" for i in range(5)])
        await stage.connect()
        options = {"offset": {"type": "first"}, "credit": 2}
        lazy = {"mode": "event", "sleep_ms": 20}
        await stage.op("subscribe", sub="c1", target="S", options=options, on_message=lazy)
        for number in range(kills):
            await stage.op("raise_next", callback=callback, times=times)
            stage.kill()
            await stage.sleep(5)
            await stage.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        await stage.op("raise_next", callback=callback, times=0)
        await watched(stage, "m16")
        await stage.finale("publish", **PROBE)

    return base(
        role="publisher", needs=["callback_raise"], bends=False, name=f"raising-{callback}-{times}-{kills}"
    )(script)


RAISING = [
    raising(callback, times, kills)
    for callback in ("session", "message", "confirm", "error")
    for times in (1, 2, 3)
    for kills in (1, 2)
]

Phase = Callable[[ScriptContext, float], Awaitable[None]]


async def idle(stage: ScriptContext, beat_s: float) -> None:
    """Neither side says anything but heartbeats."""
    await stage.sleep(7 * beat_s)


async def deaf(stage: ScriptContext, beat_s: float) -> None:
    """The server falls silent, and the client has nothing to say."""
    _fall_silent(stage)
    await stage.sleep(9 * beat_s)


async def busy(stage: ScriptContext, beat_s: float) -> None:
    """The server falls silent while the client goes on publishing."""
    _fall_silent(stage)
    for number in range(27):
        stage.begin("publish", 1.0, body=text(f"y{number}"), **PUBLISH)
        await stage.sleep(beat_s / 3)


def _fall_silent(stage: ScriptContext) -> None:
    for name in list(stage.broker.engine.connections):
        stage.broker.call(setattr, stage.broker.engine.connections[name].session, "heartbeats", None)
        stage.broker.faults.add(silent(on="idle", after_s=0.05, connection=name))
        stage.killed.add(name)


def beating(server_s: int, client_s: int, phase: Phase) -> Base:
    """Heartbeats of which each side wants its own."""

    async def script(stage: ScriptContext) -> None:
        stage.broker.create_stream("S")
        await stage.connect(heartbeat_s=client_s, auto_reconnect=False)
        await stage.op("publish", body=text("x"), **PUBLISH)
        await phase(stage, min(server_s or client_s, client_s or server_s) or 60)
        await stage.finale()

    return base(
        role="publisher",
        server={"heartbeat_s": server_s},
        bends=False,
        name=f"beats-{server_s}-{client_s}-{phase.__name__}",
    )(script)


BEATING = [
    beating(server_s, client_s, phase)
    for server_s, client_s in ((2, 2), (2, 60), (60, 3), (59, 61), (61, 59), (120, 90))
    for phase in (idle, deaf, busy)
] + [beating(server_s, client_s, idle) for server_s, client_s in ((0, 5), (5, 0), (0, 0))]


def late_end(lag_s: float) -> Base:
    """The server's end comes right after the moment at which its silence is noticed."""

    async def script(stage: ScriptContext) -> None:
        stage.broker.create_stream("S")
        await stage.connect(heartbeat_s=2)
        _fall_silent(stage)
        mark = len(stage.adapter.events)
        await stage.adapter.event("session", timeout_s=20, after=mark, what="connection_lost")
        await stage.sleep(lag_s)
        for name in list(stage.broker.engine.connections):
            stage.kill("fin", name)
        await stage.sleep(5)
        await stage.finale("publish", **PROBE)

    return base(role="publisher", server={"heartbeat_s": 2}, bends=False, name=f"late-end-{lag_s}")(script)


LATE_ENDS = [late_end(lag_s) for lag_s in (0.0, 0.01, 0.03, 0.2)]


@base(role="publisher", bends=False)
async def rounds(stage: ScriptContext) -> None:
    """Loss after loss, with a look at what the client holds once it has recovered."""
    stage.broker.create_stream("S")
    await stage.connect()
    options = {"offset": {"type": "next"}, "credit": 2}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    stage.mark("rounds")
    for number in range(6):
        await stage.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        await stage.sleep(20)
        await stage.op("stats")
        stage.kill()
        await stage.sleep(10)
    await watched(stage, "m")
    await stage.finale("publish", **PROBE)


@base(role="publisher", server={"heartbeat_s": 2}, handshake=True)
async def brisk(stage: ScriptContext) -> None:
    """Short heartbeats: any op that takes time takes several of them."""
    stage.broker.create_stream("S")
    await stage.connect()
    await stage.ended([stage.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(3)])
    await stage.sleep(9)
    await stage.op("publish", body=text("b"), **PUBLISH)
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False, needs=["endpoints"])
async def elsewhere(stage: ScriptContext) -> None:
    """Several addresses, of which only the last is that of a server."""
    stage.broker.create_stream("S")
    await stage.connect(endpoints=["127.0.0.1:9", "127.0.0.1:11", stage.endpoint])
    await stage.op("publish", body=text("a"), **PUBLISH)
    stage.kill()
    await stage.op("publish", 8.0, body=text("b"), **PUBLISH)
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False, needs=["clock_offset"], server={"heartbeat_s": 5})
async def wrong_clock(stage: ScriptContext) -> None:
    """The clock of the wall jumps to and fro while messages are under way and while no side says anything."""
    stage.broker.create_stream("S")
    await stage.connect()
    stage.broker.faults.add(latency(0.3, role="confirm", direction="out"))
    for offset_ms in (3_600_000.0, -7_200_000.0, 0.0):
        call = stage.begin("publish", body=text(f"a{offset_ms}"), **PUBLISH)
        await stage.sleep(0.1)
        await stage.op("set_clock", offset_ms=offset_ms)
        await call
        await stage.sleep(20)
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False)
async def stood_still(stage: ScriptContext) -> None:
    """The process is stopped for a while, twice; after that everything is as before."""
    stage.broker.create_stream("S")
    await stage.connect()
    options = {"offset": {"type": "first"}, "credit": 2}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    for number in range(2):
        await stage.op("publish", body=text(f"a{number}"), **PUBLISH)
        await stage.sleep(1)
        await stage.stand_still(STILL_S, stops_client=True)
        put(stage, f"m{number}")
        await stage.sleep(1)
        await stage.op("publish", body=text(f"b{number}"), **PUBLISH)
        await stage.op("publish", body=text(f"c{number}"), target="S", name="p", wait=True)
        await stage.op("rmqs.query_sequence", **ASK)
    await watched(stage, "m2")
    await stage.finale("publish", **PROBE)
