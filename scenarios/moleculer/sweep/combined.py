"""Base scripts in which things meet: options of one op, several listeners of one event, two ends."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base
from conformance.run.endings import Ending, endings
from conformance.run.pairs import pairs
from scenarios.moleculer.sweep._shared import NODE, PROBE, joined, peer, probed
from scenarios.moleculer.sweep.serving import ACTIONS
from scenarios.moleculer.sweep.varied import listeners

EVENTS = {"mode": "event"}
GROUPS: tuple[list[str], ...] = (["mail"], ["mail", "stock"], ["other"], [])
DATA = (None, 7, {"n": "ä"})
#: The options of each op; what calls stream has bases of its own.
OPTIONS: dict[str, dict[str, Any]] = {
    "mol.emit": {"groups": (["a"], ["b", "c"], ["z"]), "data": DATA},
    "mol.broadcast": {"groups": (["a"], ["b", "c"], ["z"]), "data": DATA},
    "mol.listen": {"group": ("mail", "stock"), "on_message.sleep_ms": (20,)},
    "mol.call": {"params": DATA, "meta": ({}, {"on": 1}), "timeout_ms": (0, 1500), "node": ("peer",)},
}


@base(role="emitter", injections=False)
async def emitted_with(context: ScriptContext) -> None:
    """Emits and broadcasts, each option with each."""
    listeners(context)
    peer(context, "other")
    await joined(context)
    for op in ("mol.emit", "mol.broadcast"):
        for args in pairs(OPTIONS[op], {"event": ("news.ab", "news.b.c", "olds.a")}):
            await context.op(op, **args)
    await probed(context)


@base(role="listener", injections=False)
async def heard_with(context: ScriptContext) -> None:
    """Listeners with each option, and events of others, each option with each."""
    node = peer(context)
    await joined(context)
    options = pairs(OPTIONS["mol.listen"], {"event": ("mine.*", "mine.**"), "on_message.mode": ("event",)})
    for number, args in enumerate(options):
        await context.op("mol.listen", sub=f"c{number}", **args)
    await context.sleep(1)
    for send in (node.emit, node.broadcast):
        for number, args in enumerate(pairs({"groups": GROUPS}, {"event": ("mine.a", "mine.b.c")})):
            send(data={send.__name__: number}, **args)
            await context.sleep(0.1)
    await probed(context)


@base(role="caller", injections=False)
async def called_with(context: ScriptContext) -> None:
    """Calls, each option with each."""
    peer(context)
    peer(context, "other")
    await joined(context)
    for args in pairs(OPTIONS["mol.call"], {"action": ("p.echo", "p.fail")}):
        await context.op("mol.call", **args)
    await probed(context)


@base(role="listener", needs=["callback_raise"], injections=False)
async def one_raises(context: ScriptContext) -> None:
    """Several listeners of one event, some of which raise at each: the first, one in the middle."""
    node = peer(context)
    context.notes.raises = True
    await joined(context)
    raising = {**EVENTS, "raise_on": [1, 2, 3]}
    for sub, plan in (("one", raising), ("two", EVENTS), ("three", raising), ("four", EVENTS)):
        await context.op("mol.listen", sub=sub, event="mine.*", group=sub, on_message=plan)
    await context.sleep(1)
    for number in range(3):
        node.broadcast("mine.a", {"n": number})
        node.emit("mine.b", {"n": number})
        await context.sleep(0.5)
    await probed(context)


async def _served(context: ScriptContext) -> None:
    """A node that serves and listens, with an event in a slow callback and a request under way."""
    node = peer(context)
    await joined(context)
    await context.op("mol.serve", service="s", actions=ACTIONS)
    await context.op("mol.listen", sub="c1", event="mine.*", on_message={**EVENTS, "sleep_ms": 900})
    await context.sleep(1)
    node.emit("mine.a", {"n": 1})
    node.start_call("s.slow", {"n": 1}, target=NODE, timeout=5.0)
    context.begin("mol.call", 20.0, action="p.wait", params=PROBE["params"], timeout_ms=20_000)
    await context.sleep(0.1)


ENDINGS = endings(
    _served, [Ending("unserve", "mol.unserve", {"service": "s"}), Ending("stop", "mol.stop")], role="service"
)
