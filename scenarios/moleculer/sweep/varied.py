"""Base scripts with values of every kind, and with many of everything."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.services import Context, MoleculerError, Service
from scenarios.moleculer.sweep._shared import NODE, begin, echo, heard, joined, offer, peer, probed
from scenarios.moleculer.sweep.serving import ACTIONS

#: What JSON can say, and what looks like something else.
VALUES: tuple[Any, ...] = (
    *(0, -1, 1.5, 2**31, 2**53 + 1, 2**63, 1e-9, True, False, ""),
    *("äöü€😀", 'a\nb\t"\\', "123", "null", "x" * 3000, [], [None, [1, [2]]], {}),
    *(
        {"a.b": {"c.d": 1}, "$x": None, "": 0},
        {"type": "Buffer", "data": [0, 127, 255]},
        {"ä": {"deep": [{}]}},
    ),
)
TORN = ("a b", "a\tb", "a\r\nPING", "a\nb", "a\rb", "a b 3\r\nPUB MOL 0\r\n", "a.b")
META = {"trace": "ä1", "a.b": 2, "nested": {"on": True}}
CROWD = 150


def marked(ctx: Context) -> Any:
    """Adds to the meta of the caller, and changes some of it."""
    ctx.meta["answered"] = {"by": "peer"}
    ctx.meta["trace"] = "changed"
    if (ctx.params or {}).get("fail"):
        raise MoleculerError("no", "E_NO", "REFUSED", {"why": [1]})
    return ctx.params


def marking(context: ScriptContext, id: str = "marker") -> Node:
    """A fake node whose answers carry a meta of their own."""
    node: Node = context.broker.node(id, [Service("q", {"mark": marked, "echo": echo})])
    return node


@base(role="caller", injections=False)
async def values(context: ScriptContext) -> None:
    """Parameters of every kind, one call each."""
    peer(context)
    await joined(context)
    for value in VALUES:
        await begin(context, "p.echo", value)
    await begin(context, "p.echo", {"all": list(VALUES)})
    await probed(context)


def complain(ctx: Context) -> Any:
    """Fails with the words and the type that were asked for."""
    raise MoleculerError(ctx.params["words"], 422, ctx.params["type"])


@base(role="caller", injections=False)
async def worded_errors(context: ScriptContext) -> None:
    """Calls are refused in words of every kind, with a type and without one."""
    context.broker.node("strict", [Service("w", {"complain": complain})])
    peer(context)
    await joined(context)
    for words in ("größer als 5 €", 'a "b" \\c', "%s {0} $1", "", "x" * 500, "null"):
        for type in ("TOO.LARGE", None):
            await begin(context, "w.complain", {"words": words, "type": type})
    await probed(context)


@base(role="caller", injections=False)
async def sparse_services(context: ScriptContext) -> None:
    """A node announces services without actions or events: nothing is there, or null, as some languages write
    an empty map."""
    other = context.broker.node("sparse", [])
    peer(context)
    await joined(context)
    services = [
        {"name": "bare"},
        {"name": "null", "actions": None, "events": None, "settings": None, "metadata": None},
        {"name": "r", "actions": {"r.echo": {"name": "r.echo"}}, "events": {"news.*": {"name": "news.*"}}},
    ]
    other.send_info(services=services, seq=7)
    await context.sleep(1)
    for number in range(2):
        await context.op("mol.registry")
        await context.op("mol.emit", event="news.a", data={"n": number})
        await context.op("mol.broadcast", event="news.b", data={"n": number})
        await begin(context, "p.echo", {"n": number})
    await probed(context)


@base(role="emitter", needs=["disable_balancer"], injections=False)
async def torn_topics(context: ScriptContext) -> None:
    """The server chooses who listens, so that names of events are in topics: with blanks and ends of lines,
    which would be further words, or commands, were they sent as they are."""
    other = Service("all", events={"a*": heard, "a.b": heard})
    context.broker.node("other", [other], heartbeat_s=10.0, disable_balancer=True)
    peer(context, disable_balancer=True)
    await joined(context, disable_balancer=True)
    for number, event in enumerate(TORN):
        await context.op("mol.emit", event=event, data={"n": number})
        await begin(context, "p.echo", {"n": number})
    await probed(context)


@base(role="caller")
async def metas(context: ScriptContext) -> None:
    """Meta goes with a call and comes back with its answer, changed."""
    marking(context)
    peer(context)
    await joined(context)
    for number in range(2):
        await context.ended(
            [
                begin(context, "q.mark", {"n": number}, meta=META),
                begin(context, "q.mark", {"n": number, "of": "none"}),
                begin(context, "q.mark", {"n": number, "fail": True}, meta={"x": number}),
                begin(context, "p.echo", {"n": number}, meta={"own": number}),
            ]
        )
    await probed(context)


@base(role="service", injections=False)
async def served_metas(context: ScriptContext) -> None:
    """Others ask with a meta of their own, and with none after that."""
    node = peer(context)
    await joined(context, offer("mol.serve", service="s", actions=ACTIONS))
    await context.sleep(0.5)
    for number, meta in enumerate((META, {}, {"own": 1}, {})):
        node.start_call("s.echo", {"n": number}, target=NODE, timeout=5.0, meta=meta)
        await context.sleep(0.5)
    await probed(context)


@base(role="service", injections=False)
async def served_values(context: ScriptContext) -> None:
    """Others ask with every kind of parameters and meta, and some on behalf of others."""
    node = peer(context)
    await joined(context)
    nested = {**ACTIONS, "nest": {"special": "nested_call"}}
    await context.op("mol.serve", service="s", actions=nested)
    await context.sleep(0.5)
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
    await context.sleep(1)
    await probed(context)


@base(role="listener", injections=False)
async def heard_values(context: ScriptContext) -> None:
    """Events with every kind of data, with and without the members that may be missing."""
    node = peer(context)
    await joined(
        context, offer("mol.listen", sub="one", event="mine.*", group="g", on_message={"mode": "event"})
    )
    await context.sleep(1)
    for number, value in enumerate(VALUES):
        node.emit("mine.a", value)
        node.send("EVENT", NODE, event="mine.b", data=value, id=f"bare-{number}")
    node.send("EVENT", NODE, event="mine.c", id="no-data")
    for groups in ([], None, ["other"], ["g", "other"]):
        node.send("EVENT", NODE, event="mine.d", id=f"for-{groups}", data=1, groups=groups)
    await context.sleep(0.5)
    await probed(context)


def listeners(context: ScriptContext, **options: Any) -> None:
    """Three fake nodes with listeners in groups of their own, and in common ones."""
    for id, groups in (("peer", "ab"), ("second", "bc"), ("third", "b")):
        events = {f"{group}:news.{tail}": heard for group in groups for tail in ("*", "**", "a?")}
        context.broker.node(id, [Service("p", {"echo": echo}, events)], **options)


@base(role="emitter")
async def emitting(context: ScriptContext) -> None:
    """Events for some nodes of each group, for all of them, and for none."""
    listeners(context)
    await joined(context)
    for number in range(3):
        for op in ("mol.emit", "mol.broadcast"):
            await context.op(op, event="news.ab", data={"n": number, "of": op})
            await context.op(op, event="news.b.c", data=number)
            await context.op(op, event="news.ax", data=None, groups=["b"])
            await context.op(op, event="news.ay", data=[number], groups=["a", "c"])
            await context.op(op, event="olds.a", data=number)
    await probed(context)


@base(role="emitter", needs=["disable_balancer"], injections=False)
async def balanced_events(context: ScriptContext) -> None:
    """The server chooses who of a group gets an event; broadcasts are for all."""
    listeners(context, disable_balancer=True)
    await joined(
        context,
        offer("mol.listen", sub="one", event="mine.*", group="g", on_message={"mode": "event"}),
        disable_balancer=True,
    )
    await context.sleep(1)
    for number in range(2):
        for op in ("mol.emit", "mol.broadcast"):
            await context.op(op, event="news.ab", data={"n": number, "of": op})
            await context.op(op, event="news.ax", data=number, groups=["b"])
            await context.op(op, event="olds.a", data=number)
    await probed(context)


@base(role="caller", injections=False)
async def crowd(context: ScriptContext) -> None:
    """Many calls wait at the same time, some for answers that never come."""
    peer(context)
    await joined(context)
    calls = [begin(context, "p.wait", {"n": number}, 3.0) for number in range(CROWD)]
    calls += [begin(context, "p.echo", {"n": number}, 3.0) for number in range(CROWD)]
    await context.op("state")
    await context.ended(calls)
    await begin(context, "p.echo", {"behind": True})
    await probed(context)


@base(role="listener", injections=False)
async def flood(context: ScriptContext) -> None:
    """More events and requests at a time than any buffer has places."""
    node = peer(context)
    await joined(
        context,
        offer("mol.serve", service="s", actions=ACTIONS),
        offer("mol.listen", sub="one", event="mine.*", on_message={"mode": "event"}),
    )
    await context.sleep(1)
    for number in range(1200):
        node.emit("mine.a", number)
        if number % 4 == 0:
            node.start_call("s.echo", {"n": number}, target=NODE, timeout=5.0)
    await context.sleep(1)
    await probed(context)
