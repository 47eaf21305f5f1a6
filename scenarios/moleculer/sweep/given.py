"""Base scripts of what a node can be given besides: beats, errors, ops in callbacks, an abort."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base
from fakebrokers.faults import latency
from scenarios.moleculer.sweep._shared import NODE, begin, joined, offer, peer, probed
from scenarios.moleculer.sweep.serving import ACTIONS, THROWN


@base(role="service", injections=False)
async def thrown(context: ScriptContext) -> None:
    """Actions that fail with errors of every kind; codes, types, data and texts reach the caller whole."""
    node = peer(context)
    foreign = {"plain": {"throw": {"message": "no", "plain": True}}}
    actions = {**ACTIONS, **THROWN, **foreign}
    await joined(context, offer("mol.serve", service="s", actions=actions, start_delay_ms=300))
    await context.sleep(1)
    for number in range(2):
        for action in (*THROWN, "plain", "echo"):
            node.start_call(f"s.{action}", {"n": number}, target=NODE, timeout=5.0)
        await context.sleep(0.5)
        context.kill()
        await context.sleep(6)
    await probed(context)


@base(role="caller", injections=False)
async def other_beats(context: ScriptContext) -> None:
    """Beats and patience that are no multiples of each other; another node beats just often enough."""
    node = peer(context, heartbeat_s=16.0)
    await joined(context, heartbeat_s=5.0, heartbeat_timeout_s=17.0, request_timeout_ms=1500)
    for number in range(3):
        await context.sleep(33)
        await begin(context, "p.echo", {"n": number})
        await context.op("mol.call", 1.5, action="p.wait", params={"n": number})
    node.kill()
    await context.sleep(16)
    await context.op("mol.registry")
    await context.sleep(10)
    await context.op("mol.registry")
    peer(context)
    await probed(context)


@base(role="listener", injections=False, needs=["reentrant"])
async def inside(context: ScriptContext) -> None:
    """Listeners that call, ping, emit and offer something, and wait for that."""
    node = peer(context)
    await joined(context)
    args: list[tuple[str, dict[str, Any]]] = [
        ("mol.call", {"action": "p.echo", "params": {"inner": True}, "timeout_ms": 2000}),
        ("mol.ping", {"node": "peer"}),
        ("mol.emit", {"event": "news.a", "data": {"inner": True}}),
        ("mol.serve", {"service": "s", "actions": ACTIONS}),
        ("mol.registry", {}),
        ("mol.unserve", {"service": "s"}),
    ]
    ops = [{"op": op, "args": {"session": "s1", **given}, "timeout_ms": 2000} for op, given in args]
    await context.op("mol.listen", sub="one", event="mine.*", on_message={"mode": "event", "do": ops})
    await context.sleep(1)
    for number in range(3):
        node.emit("mine.a", {"n": number})
    await begin(context, "p.echo", {"outer": True})
    await context.sleep(3)
    node.emit("mine.b", {"n": "later"})
    await context.sleep(3)
    await probed(context)


@base(role="caller", needs=["abort"])
async def aborted(context: ScriptContext) -> None:
    """The application drops its node while calls are under way, and joins anew under the same name."""
    node = peer(context)
    await joined(
        context,
        offer("mol.serve", service="s", actions=ACTIONS),
        offer("mol.listen", sub="one", event="mine.*", on_message={"mode": "event"}),
    )
    await context.sleep(1)
    name = context.broker.faults.add(latency(0.5, direction="out"))
    calls = [begin(context, "p.echo", {"n": number}) for number in range(2)]
    calls.append(begin(context, "p.wait", {}))
    calls.append(context.begin("mol.ping", node="peer"))
    await context.sleep(0.1)
    await context.op("abort")
    await context.ended(calls)
    await begin(context, "p.echo", {"n": "behind"})
    await context.op("mol.emit", event="news.a", data={"n": "behind"})
    await context.op("abort")
    await context.op("state")
    context.broker.faults.remove(name)
    await context.sleep(5)
    await joined(context, offer("mol.serve", service="s", actions=ACTIONS))
    await context.sleep(1)
    node.start_call("s.echo", {"n": 1}, target=NODE, timeout=5.0)
    await probed(context)
