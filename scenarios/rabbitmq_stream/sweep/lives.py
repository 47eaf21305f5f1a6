"""Base scripts about the life of a session: its beginning, its losses and its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from conformance.run.bases import Base, ScriptContext, base, text
from conformance.run.concurrent_actions import give_up_connect
from fakebrokers.faults import latency, reply, silent
from fakebrokers.rabbitmq_stream.codes import Code
from scenarios.rabbitmq_stream.sweep._shared import ASK, EVENTS, PROBE, PUBLISH, put, watched

STILL_S = 10.0


@base(role="publisher", handshake=True)
async def plain(context: ScriptContext) -> None:
    """Without reconnecting: state and ops after a loss."""
    context.broker.create_stream("S")
    put(context, *[f"m{i}" for i in range(5)])
    await context.connect(auto_reconnect=False)
    options = {"offset": {"type": "first"}, "credit": 3, "name": "app"}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    await context.ended([context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(3)])
    await context.op("state")
    context.kill("fin")
    await context.sleep(0.5)
    await context.op("state")
    for number in range(2):
        await context.op("publish", body=text(f"z{number}"), **PUBLISH)
        await context.op("rmqs.query_sequence", **ASK)
    await context.finale()


@base(role="publisher")
async def closing(context: ScriptContext) -> None:
    """A close with everything under way."""
    context.broker.create_stream("S")
    put(context, *[f"m{i}" for i in range(8)])
    await context.connect()
    options = {"offset": {"type": "first"}, "credit": 3}
    lazy = {"mode": "event", "sleep_ms": 100}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=lazy)
    for number in range(3):
        context.begin("publish", body=text(f"a{number}"), **PUBLISH)
    context.begin("rmqs.query_sequence", **ASK)
    await context.close()


@base(role="publisher", injections=False)
async def outage(context: ScriptContext) -> None:
    """The server is away, and the client is closed while it waits to connect again."""
    context.broker.create_stream("S")
    await context.connect()
    await context.op("publish", body=text("a"), **PUBLISH)
    context.killed.update(context.broker.engine.connections)
    context.broker.crash()
    await context.sleep(3)
    context.begin("publish", body=text("b"), **PUBLISH)
    await context.sleep(0.7)
    await context.close()
    context.broker.restart()
    await context.sleep(60)


@base(role="publisher", handshake=True)
async def turned_away(context: ScriptContext) -> None:
    """Logins that are refused, then one that is not."""
    context.broker.create_stream("S")
    context.notes.reconnects = True
    endpoints = [context.endpoint]
    for options in ({"password": "wrong"}, {"vhost": "nowhere"}, {"user": "nobody", "auto_reconnect": False}):
        await context.op("connect", 5.0, endpoints=endpoints, options=options)
        await context.op("rmqs.query_sequence", **ASK)
    context.notes.reconnects = None
    await context.connect()
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["cancel"], injections=False)
async def connect_cancelled(context: ScriptContext) -> None:
    """A connect is cancelled while the server has not answered; another one takes its place."""
    context.broker.create_stream("S")
    await give_up_connect(context)
    await context.connect()
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def challenged(context: ScriptContext) -> None:
    """A server that asks for another round of the login, on every connection."""
    context.broker.create_stream("S")
    challenge = {"challenge": b"prove"}
    context.broker.faults.add(reply(Code.SASL_CHALLENGE, fields=challenge, kind="SaslAuthenticate", nth=1))
    await context.connect()
    await context.op("publish", body=text("a"), **PUBLISH)
    context.kill()
    await context.op("publish", 8.0, body=text("b"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def two_sessions(context: ScriptContext) -> None:
    """Two sessions; the server resets the connections of one, and the application closes the other."""
    context.broker.create_stream("S")
    context.notes.sessions = 2
    await context.connect()
    first = set(context.broker.engine.connections)
    await context.connect("s2")
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


@base(role="publisher", server={"profile": "3.10"}, handshake=True)
async def older(context: ScriptContext) -> None:
    """A server of an older version, which does not know all commands."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "first"}, "credit": 2}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    await context.ended([context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(3)])
    await watched(context, "m")
    await context.finale("publish", **PROBE)


@base(role="publisher", server={"nodes": 3})
async def nodes(context: ScriptContext) -> None:
    """Several nodes: the leader moves, is gone for a while, and comes back."""
    context.broker.create_stream("S")
    put(context, "m0", "m1")
    context.broker.move_leader("S", 2)
    await context.connect()
    options = {"offset": {"type": "first"}, "credit": 2}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    named = {**PUBLISH, "name": "p"}
    await context.ended([context.begin("publish", body=text(f"a{i}"), **named) for i in range(3)])
    context.broker.move_leader("S", 3)
    await context.ended([context.begin("publish", 8.0, body=text(f"b{i}"), **named) for i in range(2)])
    context.broker.move_leader("S", None)
    calls = [context.begin("publish", 8.0, body=text(f"c{i}"), **named) for i in range(2)]
    await context.sleep(3)
    context.broker.move_leader("S", 1)
    await context.ended(calls)
    await watched(context, "m2")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def in_the_turn(context: ScriptContext) -> None:
    """Ops that begin in the turn of the loop in which the connection is lost, and in those around it."""
    context.broker.create_stream("S")
    await context.connect()
    await context.op("publish", body=text("first"), **PUBLISH)
    for number in range(8):
        calls = []
        for turn in range(6):
            if turn == number % 6:
                context.kill("rst" if number % 2 else "fin")
            calls.append(context.begin("publish", 8.0, body=text(f"{number}/{turn}"), **PUBLISH))
            calls.append(context.begin("rmqs.query_sequence", 8.0, **ASK))
            await context.sleep(0)
        await context.ended(calls)
        await context.sleep(6)
    await context.finale("publish", **PROBE)


def raising(callback: str, times: int, kills: int) -> Base:
    """Callbacks that fail while connections are lost again and again."""

    async def script(context: ScriptContext) -> None:
        context.broker.create_stream("S")
        context.notes.raises = True
        put(context, *[f"m{i}" for i in range(5)])
        await context.connect()
        options = {"offset": {"type": "first"}, "credit": 2}
        lazy = {"mode": "event", "sleep_ms": 20}
        await context.op("subscribe", sub="c1", target="S", options=options, on_message=lazy)
        for number in range(kills):
            await context.op("raise_next", callback=callback, times=times)
            context.kill()
            await context.sleep(5)
            await context.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        await context.op("raise_next", callback=callback, times=0)
        await watched(context, "m16")
        await context.finale("publish", **PROBE)

    return base(
        role="publisher",
        needs=["callback_raise"],
        injections=False,
        name=f"raising-{callback}-{times}-{kills}",
    )(script)


RAISING = [
    raising(callback, times, kills)
    for callback in ("session", "message", "confirm", "error")
    for times in (1, 2, 3)
    for kills in (1, 2)
]

Phase = Callable[[ScriptContext, float], Awaitable[None]]


async def idle(context: ScriptContext, beat_s: float) -> None:
    """Neither side says anything but heartbeats."""
    await context.sleep(7 * beat_s)


async def deaf(context: ScriptContext, beat_s: float) -> None:
    """The server falls silent, and the client has nothing to say."""
    _fall_silent(context)
    await context.sleep(9 * beat_s)


async def busy(context: ScriptContext, beat_s: float) -> None:
    """The server falls silent while the client goes on publishing."""
    _fall_silent(context)
    for number in range(27):
        context.begin("publish", 1.0, body=text(f"y{number}"), **PUBLISH)
        await context.sleep(beat_s / 3)


async def fed(context: ScriptContext, beat_s: float) -> None:
    """Messages come all the time, and the client has nothing to say."""
    stays = {"mode": "event", "sleep_ms": 8_000 * beat_s}
    await context.op("subscribe", sub="c1", target="S", options={"credit": 100}, on_message=stays)
    for number in range(28):
        put(context, f"m{number}")
        await context.sleep(beat_s / 4)
    await context.op("unsubscribe", sub="c1")
    await context.sleep(9 * beat_s)


def _fall_silent(context: ScriptContext) -> None:
    for name in list(context.broker.engine.connections):
        context.broker.call(setattr, context.broker.engine.connections[name].session, "heartbeats", None)
        context.broker.faults.add(silent(on="idle", after_s=0.05, connection=name))
        context.killed.add(name)


def beating(server_s: int, client_s: int, phase: Phase) -> Base:
    """Heartbeats of which each side wants its own."""

    async def script(context: ScriptContext) -> None:
        context.broker.create_stream("S")
        await context.connect(heartbeat_s=client_s, auto_reconnect=False)
        await context.op("publish", body=text("x"), **PUBLISH)
        await phase(context, min(server_s or client_s, client_s or server_s) or 60)
        await context.finale()

    return base(
        role="publisher",
        server={"heartbeat_s": server_s},
        injections=False,
        name=f"beats-{server_s}-{client_s}-{phase.__name__}",
    )(script)


BEATING = [
    beating(server_s, client_s, phase)
    for server_s, client_s in ((2, 2), (2, 60), (60, 3), (59, 61), (61, 59), (120, 90))
    for phase in (idle, deaf, busy, fed)
] + [beating(server_s, client_s, idle) for server_s, client_s in ((0, 5), (5, 0), (0, 0))]


def late_end(lag_s: float) -> Base:
    """The server's end comes right after the moment at which its silence is noticed."""

    async def script(context: ScriptContext) -> None:
        context.broker.create_stream("S")
        await context.connect(heartbeat_s=2)
        _fall_silent(context)
        mark = len(context.adapter.events)
        await context.adapter.event("session", timeout_s=20, after=mark, what="connection_lost")
        await context.sleep(lag_s)
        for name in list(context.broker.engine.connections):
            context.kill("fin", name)
        await context.sleep(5)
        await context.finale("publish", **PROBE)

    return base(role="publisher", server={"heartbeat_s": 2}, injections=False, name=f"late-end-{lag_s}")(
        script
    )


LATE_ENDS = [late_end(lag_s) for lag_s in (0.0, 0.01, 0.03, 0.2)]


@base(role="publisher", injections=False)
async def rounds(context: ScriptContext) -> None:
    """Loss after loss, with a look at what the client holds once it has recovered."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "next"}, "credit": 2}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    context.mark("rounds")
    for number in range(6):
        await context.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        await context.sleep(20)
        await context.op("stats")
        context.kill()
        await context.sleep(10)
    await watched(context, "m")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def outages(context: ScriptContext) -> None:
    """The server is away again and again, and each time a large message waits for it to come back."""
    context.broker.create_stream("S")
    await context.connect()
    await context.op("publish", body=text("first"), **PUBLISH)
    context.mark("rounds")
    for number in range(13):
        context.besides(context.outage(1))
        await context.sleep(0.5)
        body = {"gen": "rand", "seed": number, "len": 900_000}
        await context.op("publish", 20.0, body=body, **PUBLISH)
        await context.sleep(10)
    await context.finale("publish", **PROBE)


@base(role="publisher", server={"heartbeat_s": 2}, handshake=True)
async def brisk(context: ScriptContext) -> None:
    """Short heartbeats: any op that takes time takes several of them."""
    context.broker.create_stream("S")
    await context.connect()
    await context.ended([context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(3)])
    await context.sleep(9)
    await context.op("publish", body=text("b"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False, needs=["endpoints"])
async def elsewhere(context: ScriptContext) -> None:
    """Several addresses, of which only the last is that of a server."""
    context.broker.create_stream("S")
    await context.connect(endpoints=["127.0.0.1:9", "127.0.0.1:11", context.endpoint])
    await context.op("publish", body=text("a"), **PUBLISH)
    context.kill()
    await context.op("publish", 8.0, body=text("b"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False, needs=["clock_offset"], server={"heartbeat_s": 5})
async def wrong_clock(context: ScriptContext) -> None:
    """The clock of the wall jumps to and fro while messages are under way and while no side says anything."""
    context.broker.create_stream("S")
    await context.connect()
    context.broker.faults.add(latency(0.3, role="confirm", direction="out"))
    for offset_ms in (3_600_000.0, -7_200_000.0, 0.0):
        call = context.begin("publish", body=text(f"a{offset_ms}"), **PUBLISH)
        await context.sleep(0.1)
        await context.op("set_clock", offset_ms=offset_ms)
        await call
        await context.sleep(20)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def stood_still(context: ScriptContext) -> None:
    """The process is stopped for a while, twice; after that everything is as before."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "first"}, "credit": 2}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    for number in range(2):
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.sleep(1)
        await context.stand_still(STILL_S, stops_client=True)
        put(context, f"m{number}")
        await context.sleep(1)
        await context.op("publish", body=text(f"b{number}"), **PUBLISH)
        await context.op("publish", body=text(f"c{number}"), target="S", name="p", wait=True)
        await context.op("rmqs.query_sequence", **ASK)
    await watched(context, "m2")
    await context.finale("publish", **PROBE)
