"""Base scripts of what a client can be given besides: a project, encodings, ops in callbacks, an abort."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import latency
from scenarios.narconi.sweep._shared import EVENTS, PROBE, PUBLISH, SETTLING, put, queues, watched

OWN = "Blue7"  #: a project with queues of the same names


@base(role="http", injections=False)
async def other_project(context: ScriptContext) -> None:
    """A project of its own under a base URL, over HTTP and WebSockets, and after losses."""
    queues(context, "P", "R", "N")
    for name in ("P", "R"):
        context.broker.create_queue(OWN, name)
    await context.connect(project=OWN, base=f"http://{context.endpoint}/")
    await context.op("subscribe", sub="c1", target="R", options={"ack": True}, on_message=SETTLING)
    for number in range(2):
        context.broker.publish(OWN, "R", f"m{number}".encode())
        await context.op("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        await context.op("narc.post", 8.0, target="P", body=text(f"b{number}"))
        await context.op("narc.take", 8.0, target="N")
        context.kill()
        await context.sleep(10)
    await context.op("narc.ensure_queue", 8.0, target="N")
    await context.op("narc.post", 8.0, target="N", body=text("c"))
    await context.op("narc.take", 8.0, target="N")
    await context.op("narc.delete_queue", 8.0, target="N")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["encoding"])
async def encodings_in_any_case(context: ScriptContext) -> None:
    """Encodings as an application may spell them; the server takes each in upper and lower case."""
    names = ("HEX", "Base64", "UTF-8", "utf8")
    queues(context, "P", *names)
    await context.connect()
    for name in names:
        options = {"ack": True, "encoding": name, "limit": 3}
        await context.op("subscribe", sub=name, target=name, options=options, on_message=SETTLING)
        put(context, name, "", "abc", "äöü€")
    await context.sleep(1)
    context.kill()
    await context.sleep(5)
    for name in names:
        put(context, name, "later")
    await watched(context, "HEX", "last")
    await context.finale("publish", **PROBE)


@base(role="http", injections=False)
async def odd_limits(context: ScriptContext) -> None:
    """Limits that the server refuses, each before one that it takes."""
    limits = {"R": 0, "R1": -1, "R2": 0.5}
    queues(context, "P", *limits)
    await context.connect()
    put(context, "R", "m0", "m1", "m2")
    for name, limit in limits.items():
        options = {"ack": True, "limit": limit}
        await context.op("subscribe", sub=f"odd {name}", target=name, options=options, on_message=EVENTS)
    await context.op(
        "subscribe", sub="c1", target="R", options={"ack": True, "limit": 1}, on_message=SETTLING
    )
    await context.op("subscribe", sub="none", target="P", options={"limit": -3}, on_message=EVENTS)
    await context.sleep(1)
    await watched(context, "R", "last")
    await context.finale("publish", **PROBE)


@base(role="http", injections=False, needs=["reentrant"])
async def inside(context: ScriptContext) -> None:
    """Callbacks that publish, ask over HTTP, and end the subscription whose message they have."""
    queues(context, "P", "R", "E", "T")
    await context.connect()
    args: list[tuple[str, dict[str, Any]]] = [
        ("publish", {"target": "P", "body": text("inner"), "wait": True}),
        ("narc.post", {"target": "T", "body": text("inner too")}),
        ("narc.take", {"target": "T"}),
        ("narc.ensure_queue", {"target": "N"}),
    ]
    ops = [{"op": op, "args": {"session": "s1", **given}, "timeout_ms": 2000} for op, given in args]
    options = {"ack": True, "limit": 2}
    await context.op("subscribe", sub="c1", target="R", options=options, on_message={**SETTLING, "do": ops})
    put(context, "R", "m0", "m1", "m2")
    await context.op("publish", body=text("outer"), **PUBLISH)
    await context.sleep(2)
    end = {"op": "unsubscribe", "args": {"sub": "c2"}, "timeout_ms": 2000}
    await context.op(
        "subscribe", sub="c2", target="E", options=options, on_message={"mode": "event", "do": [end]}
    )
    put(context, "E", "e0", "e1")
    await context.sleep(3)
    await watched(context, "R", "last")
    await context.finale("publish", **PROBE)


@base(role="http", needs=["abort"])
async def aborted(context: ScriptContext) -> None:
    """The application drops its session while ops are under way, and connects anew under the same name."""
    queues(context, "P", "R")
    await context.connect()
    options = {"ack": True, "limit": 2}
    slow = {"mode": "event", "sleep_ms": 500}
    await context.op("subscribe", sub="c1", target="R", options=options, on_message=slow)
    put(context, "R", "m0", "m1")
    name = context.broker.faults.add(latency(0.5, direction="out"))
    calls = [context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(2)]
    calls.append(context.begin("narc.post", target="P", body=text("b")))
    await context.sleep(0.1)
    await context.op("abort")
    await context.ended(calls)
    await context.op("publish", body=text("behind"), **PUBLISH)
    await context.op("narc.post", target="P", body=text("behind too"))
    await context.op("abort")
    await context.op("state")
    context.broker.faults.remove(name)
    await context.sleep(5)
    await context.connect()
    await context.op("subscribe", sub="c2", target="R", options=options, on_message=SETTLING)
    await context.sleep(2)
    await watched(context, "R", "last")
    await context.finale("publish", **PROBE)
