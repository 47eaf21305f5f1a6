"""Base scripts about the life of a node: its losses and its end."""

from __future__ import annotations

import asyncio

from conformance.run.bases import ScriptContext, base
from scenarios.moleculer.sweep._shared import CONNECT_S, NODE, begin, joined, peer, probed
from scenarios.moleculer.sweep.serving import ACTIONS


@base(role="service")
async def closing(stage: ScriptContext) -> None:
    """A close with everything under way."""
    node = peer(stage)
    await joined(stage)
    await stage.op("mol.serve", service="s", actions=ACTIONS)
    await stage.sleep(0.5)
    for number in range(3):
        node.start_call("s.slow", {"n": number}, target=NODE, timeout=5.0)
        begin(stage, "p.wait", {"n": number}, 4.0)
    begin(stage, "p.echo", {"n": "last"})
    loop = asyncio.get_running_loop()
    for delay_s in (0.03, 0.08):  # a node that stops still answers
        loop.call_later(delay_s, lambda: node.start_call("s.slow", {"n": "late"}, target=NODE, timeout=5.0))
    await stage.close()


@base(role="caller", bends=False)
async def outage(stage: ScriptContext) -> None:
    """The server is away, and the node is closed while it waits to connect again."""
    peer(stage)
    await joined(stage)
    await begin(stage, "p.echo", {"n": 1})
    stage.killed.update(stage.broker.engine.connections)
    stage.broker.crash()
    await stage.sleep(3)
    begin(stage, "p.echo", {"n": 2})
    await stage.sleep(0.7)
    await stage.close()
    stage.broker.restart()
    await stage.sleep(60)


@base(role="caller", bends=False)
async def stopped(stage: ScriptContext) -> None:
    """The process is stopped for a while, again and again, for less time than nodes are missed after."""
    node = peer(stage)
    await joined(stage)
    await stage.op("mol.serve", service="s", actions=ACTIONS)
    await stage.sleep(1)
    for number in range(3):
        await begin(stage, "p.echo", {"n": number})
        await stage.stand_still(6)
        await stage.sleep(1)
        node.start_call("s.echo", {"n": number}, target=NODE, timeout=5.0)
        await begin(stage, "p.echo", {"awake": number})
    await stage.op("mol.registry")
    await probed(stage)


@base(role="caller", bends=False)
async def herd(stage: ScriptContext) -> None:
    """Several nodes of one application, and a server that is away again and again."""
    stage.notes.sessions = stage.notes.crowd = 3
    peer(stage)
    await joined(stage)
    for number in (2, 3):
        await stage.connect(f"s{number}", CONNECT_S, node_id=f"other{number}")
    for _ in range(3):
        await stage.outage(4)
        await stage.sleep(30)
    for number in (2, 3):
        await stage.op("close", session=f"s{number}")
    await probed(stage)


@base(role="caller", bends=False)
async def rounds(stage: ScriptContext) -> None:
    """Losses, one after the other, and a look at what each leaves."""
    peer(stage)
    await joined(stage)
    await stage.op("mol.serve", service="s", actions=ACTIONS)
    stage.mark("rounds")
    for number in range(6):
        await begin(stage, "p.echo", {"n": number})
        await begin(stage, "p.wait", {"n": number}, 0.5)
        stage.kill("fin" if number % 2 else "rst")
        await stage.sleep(8)
        await stage.op("stats")
    await probed(stage)


@base(role="caller")
async def again(stage: ScriptContext) -> None:
    """A service is offered through several losses; it is announced to all nodes again."""
    node = peer(stage)
    await joined(stage)
    await stage.op("mol.serve", service="s", actions=ACTIONS)
    await stage.op("mol.listen", sub="one", event="mine.*", on_message={"mode": "event"})
    await stage.sleep(1)
    for number in range(2):
        stage.kill()
        await stage.sleep(4)
        node.start_call("s.echo", {"n": number}, target=NODE, timeout=5.0)
        node.emit("mine.a", {"n": number})
        await begin(stage, "p.echo", {"n": number})
    await probed(stage)
