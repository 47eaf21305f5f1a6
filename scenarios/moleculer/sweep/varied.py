"""Base scripts with values of every kind, and with many of everything."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.services import Context, MoleculerError, Service
from scenarios.moleculer.sweep._shared import NODE, begin, echo, heard, joined, peer, probed
from scenarios.moleculer.sweep.serving import ACTIONS

#: What JSON can say, and what looks like something else.
VALUES: tuple[Any, ...] = (
    *(0, -1, 1.5, 2**31, 2**53 + 1, 1e-9, True, False, ""),
    *("äöü€😀", 'a\nb\t"\\', "123", "null", "x" * 3000, [], [None, [1, [2]]], {}),
    *(
        {"a.b": {"c.d": 1}, "$x": None, "": 0},
        {"type": "Buffer", "data": [0, 127, 255]},
        {"ä": {"deep": [{}]}},
    ),
)
META = {"trace": "ä1", "a.b": 2, "nested": {"on": True}}
CROWD = 150


def marked(ctx: Context) -> Any:
    """Adds to the meta of the caller, and changes some of it."""
    ctx.meta["answered"] = {"by": "peer"}
    ctx.meta["trace"] = "changed"
    if (ctx.params or {}).get("fail"):
        raise MoleculerError("no", "E_NO", "REFUSED", {"why": [1]})
    return ctx.params


def marking(stage: ScriptContext, id: str = "marker") -> Node:
    """A fake node whose answers carry a meta of their own."""
    node: Node = stage.broker.node(id, [Service("q", {"mark": marked, "echo": echo})])
    return node


@base(role="caller", bends=False)
async def values(stage: ScriptContext) -> None:
    """Parameters of every kind, one call each."""
    peer(stage)
    await joined(stage)
    for value in VALUES:
        await begin(stage, "p.echo", value)
    await begin(stage, "p.echo", {"all": list(VALUES)})
    await probed(stage)


@base(role="caller")
async def metas(stage: ScriptContext) -> None:
    """Meta goes with a call and comes back with its answer, changed."""
    marking(stage)
    peer(stage)
    await joined(stage)
    for number in range(2):
        await stage.ended(
            [
                begin(stage, "q.mark", {"n": number}, meta=META),
                begin(stage, "q.mark", {"n": number, "of": "none"}),
                begin(stage, "q.mark", {"n": number, "fail": True}, meta={"x": number}),
                begin(stage, "p.echo", {"n": number}, meta={"own": number}),
            ]
        )
    await probed(stage)


@base(role="service", bends=False)
async def served_values(stage: ScriptContext) -> None:
    """Others ask with every kind of parameters and meta, and some on behalf of others."""
    node = peer(stage)
    await joined(stage)
    nested = {**ACTIONS, "nest": {"special": "nested_call"}}
    await stage.op("mol.serve", service="s", actions=nested)
    await stage.sleep(0.5)
    for value in VALUES:
        node.start_call("s.echo", value, target=NODE, timeout=5.0)
    for level in (1, 2, 7):
        fields = {
            "action": "s.nest",
            "level": level,
            "requestID": f"root-{level}",
            "meta": META,
            "headers": {},
        }
        inner = {"action": "p.echo", "params": {"level": level}}
        more = {"timeout": 4000, "stream": False, "parentID": None, "caller": None, "tracing": None}
        node.send("REQ", NODE, id=f"nest-{level}", params=inner, **fields, **more)
    await stage.sleep(1)
    await probed(stage)


@base(role="listener", bends=False)
async def heard_values(stage: ScriptContext) -> None:
    """Events with every kind of data, with and without the members that may be missing."""
    node = peer(stage)
    await joined(stage)
    await stage.op("mol.listen", sub="one", event="mine.*", group="g", on_message={"mode": "event"})
    await stage.sleep(1)
    for number, value in enumerate(VALUES):
        node.emit("mine.a", value)
        node.send("EVENT", NODE, event="mine.b", data=value, id=f"bare-{number}")
    node.send("EVENT", NODE, event="mine.c", id="no-data")
    for groups in ([], None, ["other"], ["g", "other"]):
        node.send("EVENT", NODE, event="mine.d", id=f"for-{groups}", data=1, groups=groups)
    await stage.sleep(0.5)
    await probed(stage)


def listeners(stage: ScriptContext, **options: Any) -> None:
    """Three fake nodes with listeners in groups of their own, and in common ones."""
    for id, groups in (("peer", "ab"), ("second", "bc"), ("third", "b")):
        events = {f"{group}:news.{tail}": heard for group in groups for tail in ("*", "**", "a?")}
        stage.broker.node(id, [Service("p", {"echo": echo}, events)], **options)


@base(role="emitter")
async def emitting(stage: ScriptContext) -> None:
    """Events for some nodes of each group, for all of them, and for none."""
    listeners(stage)
    await joined(stage)
    for number in range(3):
        for op in ("mol.emit", "mol.broadcast"):
            await stage.op(op, event="news.ab", data={"n": number, "of": op})
            await stage.op(op, event="news.b.c", data=number)
            await stage.op(op, event="news.ax", data=None, groups=["b"])
            await stage.op(op, event="news.ay", data=[number], groups=["a", "c"])
            await stage.op(op, event="olds.a", data=number)
    await probed(stage)


@base(role="emitter", needs=["disable_balancer"], bends=False)
async def balanced_events(stage: ScriptContext) -> None:
    """The server chooses who of a group gets an event; broadcasts are for all."""
    listeners(stage, disable_balancer=True)
    await joined(stage, disable_balancer=True)
    await stage.op("mol.listen", sub="one", event="mine.*", group="g", on_message={"mode": "event"})
    await stage.sleep(1)
    for number in range(2):
        for op in ("mol.emit", "mol.broadcast"):
            await stage.op(op, event="news.ab", data={"n": number, "of": op})
            await stage.op(op, event="news.ax", data=number, groups=["b"])
            await stage.op(op, event="olds.a", data=number)
    await probed(stage)


@base(role="caller", bends=False)
async def crowd(stage: ScriptContext) -> None:
    """Many calls wait at the same time, some for answers that never come."""
    peer(stage)
    await joined(stage)
    calls = [begin(stage, "p.wait", {"n": number}, 3.0) for number in range(CROWD)]
    calls += [begin(stage, "p.echo", {"n": number}, 3.0) for number in range(CROWD)]
    await stage.op("state")
    await stage.ended(calls)
    await begin(stage, "p.echo", {"behind": True})
    await probed(stage)


@base(role="listener", bends=False)
async def flood(stage: ScriptContext) -> None:
    """More events and requests at a time than any buffer has places."""
    node = peer(stage)
    await joined(stage)
    await stage.op("mol.serve", service="s", actions=ACTIONS)
    await stage.op("mol.listen", sub="one", event="mine.*", on_message={"mode": "event"})
    await stage.sleep(1)
    for number in range(1200):
        node.emit("mine.a", number)
        if number % 4 == 0:
            node.start_call("s.echo", {"n": number}, target=NODE, timeout=5.0)
    await stage.sleep(1)
    await probed(stage)
