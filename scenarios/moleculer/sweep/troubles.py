"""Base scripts in which the same trouble comes again and again, or from the beginning."""

from __future__ import annotations

from conformance.run.bases import Base, ScriptContext, base
from conformance.run.concurrent_actions import give_up_connect
from scenarios._servers import in_turns, second_server
from scenarios.moleculer.sweep._shared import (
    CONNECT_S,
    MET_S,
    NODE,
    PEER,
    begin,
    joined,
    offer,
    peer,
    probed,
    service_of_peer,
)
from scenarios.moleculer.sweep.serving import ACTIONS

NOWHERE, NEITHER = "127.0.0.9:1", "127.0.0.9:2"  #: where no server listens


@base(role="caller", injections=False)
async def no_server_yet(context: ScriptContext) -> None:
    """The server comes later than the node; the node waits for it."""
    node = peer(context)
    context.broker.crash()
    can = context.adapter.hello.can("auto_reconnect")
    options = context.notes.order_reconnect({"node_id": NODE}, can=can)
    call = context.begin("connect", 30.0, endpoints=[context.endpoint], options=options)
    await context.sleep(5)
    context.broker.restart()
    await call
    peer(context, "second") if not node.peers else None
    await context.sleep(MET_S)
    await begin(context, "p.echo", {"n": 1})
    await probed(context)


@base(role="caller", injections=False)
async def given_up(context: ScriptContext) -> None:
    """The application no longer waits for a connect, because of its deadline or of a close; it ends there."""
    context.notes.abandons = True
    peer(context)
    context.broker.crash()
    options = {"node_id": NODE}
    await context.op("connect", 2.0, endpoints=[context.endpoint], options=options)
    context.begin("connect", 20.0, endpoints=[context.endpoint], options=options)
    await context.sleep(1.5)
    await context.close()
    context.broker.restart()
    await context.sleep(60)


@base(role="caller", needs=["cancel"], injections=False)
async def connect_cancelled(context: ScriptContext) -> None:
    """A connect is cancelled while the server has not answered; another one takes its place."""
    peer(context)
    await give_up_connect(context, node_id=NODE)
    await joined(context)
    await begin(context, "p.echo", {"n": 1})
    await probed(context)


@base(role="caller", needs=["endpoints"], injections=False)
async def several_servers(context: ScriptContext) -> None:
    """The first server of the list is not there."""
    peer(context)
    await context.connect(timeout=CONNECT_S, endpoints=[NOWHERE, context.endpoint], node_id=NODE)
    await context.sleep(MET_S)
    await begin(context, "p.echo", {"n": 1})
    context.kill()
    await context.sleep(5)
    await begin(context, "p.echo", {"n": 2})
    await probed(context)


def servers_in_turn(turns: int) -> Base:
    """Two servers that are away by turns; see `in_turns`."""

    async def script(context: ScriptContext) -> None:
        """Two servers, with a node of the same name at each, are away by turns."""
        with second_server(context) as other:
            peer(context)
            other.node(PEER, [service_of_peer()], heartbeat_s=10.0)
            both = [context.endpoint, other.where]
            await context.connect(timeout=CONNECT_S, endpoints=both, node_id=NODE)
            await context.sleep(MET_S)
            await context.op("mol.serve", service="s", actions=ACTIONS)
            await begin(context, "p.echo", {"n": "first"})
            async for turn in in_turns(context, other, turns):
                await begin(context, "p.echo", {"n": turn})
            await probed(context)

    return base(role="caller", needs=["endpoints"], injections=False, name=f"servers-in-turn-{turns}")(script)


IN_TURN = [servers_in_turn(2), servers_in_turn(3)]


@base(role="caller", needs=["endpoints"], injections=False)
async def middle_server(context: ScriptContext) -> None:
    """Of three servers only the one in the middle of the list is there."""
    peer(context)
    endpoints = [NOWHERE, context.endpoint, NEITHER]
    await context.connect(timeout=CONNECT_S, endpoints=endpoints, node_id=NODE)
    await context.sleep(MET_S)
    await begin(context, "p.echo", {"n": 1})
    context.kill()
    await context.sleep(5)
    await begin(context, "p.echo", {"n": 2})
    await probed(context)


@base(role="caller", needs=["clock_offset"], injections=False)
async def wrong_clock(context: ScriptContext) -> None:
    """The clock of the wall jumps to and fro, while calls wait and while no side says anything."""
    node = peer(context, heartbeat_s=2.0)
    await joined(
        context, offer("mol.serve", service="s", actions=ACTIONS), heartbeat_s=2.0, heartbeat_timeout_s=6.0
    )
    await context.sleep(1)
    for number, offset_ms in enumerate((3_600_000, -3_600_000, 0)):
        calls = [begin(context, "p.echo", {"n": number}), begin(context, "p.wait", {"n": number}, 1.0)]
        node.start_call("s.slow", {"n": number}, target=NODE, timeout=5.0)
        await context.op("set_clock", offset_ms=offset_ms)
        calls.append(context.begin("mol.ping", node="peer"))
        await context.ended(calls)
        await context.sleep(8)
        await context.op("mol.registry")
    await probed(context)


def raising(callback: str, times: int) -> Base:
    """Callbacks of the application that fail, and events after them."""

    async def script(context: ScriptContext) -> None:
        node = peer(context)
        context.notes.raises = True
        await joined(context)
        await context.op("mol.listen", sub="one", event="mine.*", on_message={"mode": "event"})
        await context.sleep(1)
        await context.op("raise_next", callback=callback, times=times)
        for number in range(4):
            node.emit("mine.a", {"n": number})
        await context.sleep(0.5)
        context.kill()
        await context.sleep(5)
        node.emit("mine.a", {"n": "behind"})
        await begin(context, "p.echo", {"n": 1})
        await context.op("raise_next", callback=callback, times=0)
        await probed(context)

    return base(
        role="listener", needs=["callback_raise"], injections=False, name=f"raising-{callback}-{times}"
    )(script)


RAISING = [raising(callback, times) for callback in ("session", "message", "error") for times in (1, 3)]


@base(role="service", injections=False)
async def offered_again(context: ScriptContext) -> None:
    """Services come and go between losses; what is offered is announced each time."""
    node = peer(context)
    await joined(context)
    for number in range(3):
        await context.op("mol.serve", service=f"s{number}", actions=ACTIONS)
        await context.sleep(2)
        context.kill("fin" if number % 2 else "rst")
        await context.sleep(5)
        node.start_call(f"s{number}.nowhere", {"n": number}, target=NODE, timeout=5.0)
        if number:
            await context.op("mol.unserve", service=f"s{number - 1}")
            await context.sleep(2)
    await probed(context)


@base(role="service")
async def slow_close(context: ScriptContext) -> None:
    """A close while a request is being answered that takes longer than everything else."""
    node = peer(context)
    await joined(context)
    actions = {"slow": {"sleep_ms": 1200}, "stop": {"special": "slow_stop"}, "echo": "echo"}
    await context.op("mol.serve", service="t", actions=actions)
    await context.sleep(0.5)
    for number in range(2):
        node.start_call("t.slow", {"n": number}, target=NODE, timeout=5.0)
    await context.sleep(0.1)
    await context.close(timeout=10.0)


@base(role="listener", injections=False)
async def busy(context: ScriptContext) -> None:
    """Callbacks and actions take their time, while calls wait for answers and others ask."""
    node = peer(context)
    await joined(context)
    slow = {"mode": "event", "sleep_ms": 1500}
    await context.op("mol.listen", sub="slow", event="mine.*", on_message=slow)
    await context.op("mol.serve", service="s", actions={**ACTIONS, "late": {"sleep_ms": 1500}})
    await context.sleep(1)
    for number in range(2):
        for begun in ("callback", "action"):
            if begun == "callback":
                node.emit("mine.a", {"n": number})
            else:
                node.start_call("s.late", {"n": number}, target=NODE, timeout=5.0)
            await context.sleep(0.1)
            node.start_call("s.echo", {"n": number}, target=NODE, timeout=1.0)
            node.send("PING", NODE, time=number, id=f"ping-{begun}-{number}")
            await begin(context, "p.echo", {begun: number})
            await context.op("mol.ping", node="peer")
            await context.sleep(3)
    await probed(context)
