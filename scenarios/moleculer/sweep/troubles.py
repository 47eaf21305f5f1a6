"""Base scripts in which the same trouble comes again and again, or from the beginning."""

from __future__ import annotations

from conformance.run.bases import Base, ScriptContext, base
from scenarios.moleculer.sweep._shared import CONNECT_S, MET_S, NODE, begin, joined, peer, probed
from scenarios.moleculer.sweep.serving import ACTIONS

NOWHERE = "127.0.0.9:1"  #: where no server listens


@base(role="caller", bends=False)
async def no_server_yet(stage: ScriptContext) -> None:
    """The server comes later than the node; the node waits for it."""
    node = peer(stage)
    stage.broker.crash()
    call = stage.begin("connect", 30.0, endpoints=[stage.endpoint], options={"node_id": NODE})
    await stage.sleep(5)
    stage.broker.restart()
    await call
    stage.notes.order_reconnect(True)
    peer(stage, "second") if not node.peers else None
    await stage.sleep(MET_S)
    await begin(stage, "p.echo", {"n": 1})
    await probed(stage)


@base(role="caller", bends=False)
async def given_up(stage: ScriptContext) -> None:
    """The application no longer waits for a connect, because of its deadline or of a close; it ends there."""
    stage.notes.abandons = True
    peer(stage)
    stage.broker.crash()
    options = {"node_id": NODE}
    await stage.op("connect", 2.0, endpoints=[stage.endpoint], options=options)
    stage.begin("connect", 20.0, endpoints=[stage.endpoint], options=options)
    await stage.sleep(1.5)
    await stage.close()
    stage.broker.restart()
    await stage.sleep(60)


@base(role="caller", needs=["endpoints"], bends=False)
async def several_servers(stage: ScriptContext) -> None:
    """The first server of the list is not there."""
    peer(stage)
    await stage.connect(timeout=CONNECT_S, endpoints=[NOWHERE, stage.endpoint], node_id=NODE)
    await stage.sleep(MET_S)
    await begin(stage, "p.echo", {"n": 1})
    stage.kill()
    await stage.sleep(5)
    await begin(stage, "p.echo", {"n": 2})
    await probed(stage)


@base(role="caller", needs=["clock_offset"], bends=False)
async def wrong_clock(stage: ScriptContext) -> None:
    """The clock of the wall jumps to and fro, while calls wait and while no side says anything."""
    node = peer(stage, heartbeat_s=2.0)
    await joined(stage, heartbeat_s=2.0, heartbeat_timeout_s=6.0)
    await stage.op("mol.serve", service="s", actions=ACTIONS)
    await stage.sleep(1)
    for number, offset_ms in enumerate((3_600_000, -3_600_000, 0)):
        calls = [begin(stage, "p.echo", {"n": number}), begin(stage, "p.wait", {"n": number}, 1.0)]
        node.start_call("s.slow", {"n": number}, target=NODE, timeout=5.0)
        await stage.op("set_clock", offset_ms=offset_ms)
        calls.append(stage.begin("mol.ping", node="peer"))
        await stage.ended(calls)
        await stage.sleep(8)
        await stage.op("mol.registry")
    await probed(stage)


def raising(callback: str, times: int) -> Base:
    """Callbacks of the application that fail, and events after them."""

    async def script(stage: ScriptContext) -> None:
        node = peer(stage)
        stage.notes.raises = True
        await joined(stage)
        await stage.op("mol.listen", sub="one", event="mine.*", on_message={"mode": "event"})
        await stage.sleep(1)
        await stage.op("raise_next", callback=callback, times=times)
        for number in range(4):
            node.emit("mine.a", {"n": number})
        await stage.sleep(0.5)
        stage.kill()
        await stage.sleep(5)
        node.emit("mine.a", {"n": "behind"})
        await begin(stage, "p.echo", {"n": 1})
        await stage.op("raise_next", callback=callback, times=0)
        await probed(stage)

    return base(role="listener", needs=["callback_raise"], bends=False, name=f"raising-{callback}-{times}")(
        script
    )


RAISING = [raising(callback, times) for callback in ("session", "message", "error") for times in (1, 3)]


@base(role="service", bends=False)
async def offered_again(stage: ScriptContext) -> None:
    """Services come and go between losses; what is offered is announced each time."""
    node = peer(stage)
    await joined(stage)
    for number in range(3):
        await stage.op("mol.serve", service=f"s{number}", actions=ACTIONS)
        await stage.sleep(2)
        stage.kill("fin" if number % 2 else "rst")
        await stage.sleep(5)
        node.start_call(f"s{number}.nowhere", {"n": number}, target=NODE, timeout=5.0)
        if number:
            await stage.op("mol.unserve", service=f"s{number - 1}")
            await stage.sleep(2)
    await probed(stage)


@base(role="service")
async def slow_close(stage: ScriptContext) -> None:
    """A close while a request is being answered that takes longer than everything else."""
    node = peer(stage)
    await joined(stage)
    actions = {"slow": {"sleep_ms": 1200}, "stop": {"special": "slow_stop"}, "echo": "echo"}
    await stage.op("mol.serve", service="t", actions=actions)
    await stage.sleep(0.5)
    for number in range(2):
        node.start_call("t.slow", {"n": number}, target=NODE, timeout=5.0)
    await stage.sleep(0.1)
    await stage.close(timeout=10.0)


@base(role="listener", bends=False)
async def busy(stage: ScriptContext) -> None:
    """Callbacks and actions take their time, while calls wait for answers and others ask."""
    node = peer(stage)
    await joined(stage)
    slow = {"mode": "event", "sleep_ms": 1500}
    await stage.op("mol.listen", sub="slow", event="mine.*", on_message=slow)
    await stage.op("mol.serve", service="s", actions={**ACTIONS, "late": {"sleep_ms": 1500}})
    await stage.sleep(1)
    for number in range(2):
        for begun in ("callback", "action"):
            if begun == "callback":
                node.emit("mine.a", {"n": number})
            else:
                node.start_call("s.late", {"n": number}, target=NODE, timeout=5.0)
            await stage.sleep(0.1)
            node.start_call("s.echo", {"n": number}, target=NODE, timeout=1.0)
            node.send("PING", NODE, time=number, id=f"ping-{begun}-{number}")
            await begin(stage, "p.echo", {begun: number})
            await stage.op("mol.ping", node="peer")
            await stage.sleep(3)
    await probed(stage)
