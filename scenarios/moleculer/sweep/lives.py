"""Base scripts about the life of a node: its losses and its end."""

from __future__ import annotations

import asyncio

from conformance.run.bases import ScriptContext, base
from fakebrokers.moleculer.services import Service
from scenarios.moleculer.sweep._shared import CONNECT_S, NODE, PEER, begin, echo, joined, offer, peer, probed
from scenarios.moleculer.sweep.serving import ACTIONS


@base(role="service")
async def closing(context: ScriptContext) -> None:
    """A close with everything under way."""
    node = peer(context)
    await joined(context, offer("mol.serve", service="s", actions=ACTIONS))
    await context.sleep(0.5)
    for number in range(3):
        node.start_call("s.slow", {"n": number}, target=NODE, timeout=5.0)
        begin(context, "p.wait", {"n": number}, 4.0)
    begin(context, "p.echo", {"n": "last"})
    loop = asyncio.get_running_loop()
    for delay_s in (0.03, 0.08):  # a node that stops still answers
        loop.call_later(delay_s, lambda: node.start_call("s.slow", {"n": "late"}, target=NODE, timeout=5.0))
    await context.close()


@base(role="caller", injections=False)
async def outage(context: ScriptContext) -> None:
    """The server is away, and the node is closed while it waits to connect again."""
    peer(context)
    await joined(context)
    await begin(context, "p.echo", {"n": 1})
    context.killed.update(context.broker.engine.connections)
    context.broker.crash()
    await context.sleep(3)
    begin(context, "p.echo", {"n": 2})
    await context.sleep(0.7)
    await context.close()
    context.broker.restart()
    await context.sleep(60)


@base(role="caller", injections=False)
async def stopped(context: ScriptContext) -> None:
    """The process is stopped for a while, again and again, for less time than nodes are missed after."""
    node = peer(context)
    await joined(context, offer("mol.serve", service="s", actions=ACTIONS))
    await context.sleep(1)
    for number in range(3):
        await begin(context, "p.echo", {"n": number})
        await context.stand_still(6)
        await context.sleep(1)
        node.start_call("s.echo", {"n": number}, target=NODE, timeout=5.0)
        await begin(context, "p.echo", {"awake": number})
    await context.op("mol.registry")
    await probed(context)


@base(role="caller", injections=False)
async def herd(context: ScriptContext) -> None:
    """Several nodes of one application, and a server that is away again and again."""
    context.notes.sessions = context.notes.crowd = 3
    peer(context)
    await joined(context)
    for number in (2, 3):
        await context.connect(f"s{number}", CONNECT_S, node_id=f"other{number}")
    for _ in range(3):
        await context.outage(4)
        await context.sleep(30)
    for number in (2, 3):
        await context.op("close", session=f"s{number}")
    await probed(context)


@base(role="caller", injections=False)
async def rounds(context: ScriptContext) -> None:
    """Losses, one after the other, and a look at what each leaves."""
    peer(context)
    await joined(context, offer("mol.serve", service="s", actions=ACTIONS))
    context.mark("rounds")
    for number in range(6):
        await begin(context, "p.echo", {"n": number})
        await begin(context, "p.wait", {"n": number}, 0.5)
        context.kill("fin" if number % 2 else "rst")
        await context.sleep(8)
        await context.op("stats")
    await probed(context)


@base(role="caller", injections=False)
async def at_rest(context: ScriptContext) -> None:
    """The same ops again and again: what the node holds after them must not grow."""
    node = peer(context)
    await joined(context)
    context.mark("rounds")
    for number in range(6):
        await context.op("mol.serve", service="s", actions=ACTIONS)
        await context.sleep(1)
        node.start_call("s.echo", {"n": number}, target=NODE, timeout=5.0)
        for action in ("p.echo", "p.fail", "p.nowhere"):
            await begin(context, action, {"n": number})
        await begin(context, "p.wait", {"n": number}, 0.5)
        await context.op("mol.ping", node="peer")
        await context.op("mol.emit", event="news.a", data={"n": number})
        await context.op("mol.unserve", service="s")
        await context.sleep(1)
        await context.op("stats")
    await probed(context)


@base(role="caller")
async def again(context: ScriptContext) -> None:
    """A service is offered through several losses; it is announced to all nodes again."""
    node = peer(context)
    await joined(
        context,
        offer("mol.serve", service="s", actions=ACTIONS),
        offer("mol.listen", sub="one", event="mine.*", on_message={"mode": "event"}),
    )
    await context.sleep(1)
    for number in range(2):
        context.kill()
        await context.sleep(4)
        node.start_call("s.echo", {"n": number}, target=NODE, timeout=5.0)
        node.emit("mine.a", {"n": number})
        await begin(context, "p.echo", {"n": number})
    await probed(context)


@base(role="service", injections=False)
async def late_service(context: ScriptContext) -> None:
    """A node is closed right after it has begun to offer something that takes its time to stop."""
    peer(context)
    await joined(context, offer("mol.serve", service="s", actions=ACTIONS))
    await context.sleep(1)
    await context.op("mol.serve", service="late", actions={"echo": "echo", "stop": {"special": "slow_stop"}})
    await context.close(timeout=10.0)


@base(role="service", injections=False)
async def lost_in_close(context: ScriptContext) -> None:
    """The connection is lost while a node stops, and no server is there any more."""
    peer(context)
    await joined(context, offer("mol.serve", service="s", actions=ACTIONS))
    await context.sleep(1)
    loop = asyncio.get_running_loop()
    context.killed.update(context.broker.engine.connections)
    loop.call_later(0.02, context.broker.crash)
    await context.close(timeout=10.0)


@base(role="caller", injections=False)
async def another_instance(context: ScriptContext) -> None:
    """A node crashes and is back at once under its id, with other services, and counts from the beginning."""
    node = context.broker.node(PEER, [Service("old", {"echo": echo})], heartbeat_s=10.0)
    await joined(context)
    await begin(context, "old.echo", {"n": 1})
    node.kill()
    peer(context)
    await context.sleep(2)
    await begin(context, "p.echo", {"n": 2})
    await probed(context)
