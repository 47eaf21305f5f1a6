"""Base scripts about what publishers share: a window of unconfirmed messages, and ids."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import delay, drop, latency
from scenarios.rabbitmq_stream.sweep._shared import EVENTS, PROBE, PUBLISH, watched

LINE = 1000  #: messages that the reference client lets wait for room
LARGE, MANY, FEW = 1_000_000, 17, 40  #: of a message, bytes; how many fill a window; how many wait for room


@base(role="publisher", injections=False, needs=["cancel"])
async def crowded_window(context: ScriptContext) -> None:
    """Many messages wait for room behind large ones without confirms, and most of them are cancelled."""
    context.broker.create_stream("S")
    await context.connect()
    await context.op("publish", body=text("first"), **PUBLISH)
    context.broker.faults.add(latency(2.0, role="confirm", direction="out"))
    for number in range(MANY):
        body = {"gen": "zero", "len": LARGE + number}
        context.begin("publish", 20.0, body=body, **PUBLISH)
    await context.sleep(1)
    waiting = [context.begin("publish", 20.0, body=text(f"w{i}"), **PUBLISH) for i in range(FEW)]
    await context.sleep(0.1)
    for call in waiting[: 3 * FEW // 4]:
        await context.adapter.cancel(call)
    await context.ended(waiting)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def late_confirm(context: ScriptContext) -> None:
    """The confirm of a publisher that was deleted comes while a new one waits for its own, which is lost."""
    for name in ("S", "S2"):
        context.broker.create_stream(name)
    await context.connect()
    context.broker.faults.add(delay(1.0, kind="PublishConfirm", nth=1))
    context.broker.faults.add(delay(3.0, kind="Publish", direction="in", nth=2))
    await context.op("publish", body=text("old"), target="S", wait=False)
    await context.sleep(0.1)
    await context.op("rmqs.delete_publisher", target="S", name=None)
    new = context.begin("publish", 8.0, body=text("new"), target="S2", wait=True)
    await context.sleep(2)
    context.kill()
    await new
    await context.sleep(5)
    await context.finale("publish", **PROBE)


@base(role="consumer", server={"nodes": 2}, injections=False)
async def at_two_nodes(context: ScriptContext) -> None:
    """Publishers and consumers of two streams, each at a node of its own, where they may have the same ids;
    the confirms come in either order."""
    streams, server = ("S", "S2"), context.broker
    for name, node in zip(streams, server.nodes, strict=True):
        server.call(server.broker.create, "/", name, {"initial-cluster-size": "1"}, node)
    await context.connect()
    for name in streams:
        await context.op("publish", 8.0, body=text(f"first {name}"), target=name, wait=True)
    for name in streams:
        options = {"offset": {"type": "next"}, "credit": 3}
        await context.op("subscribe", 8.0, sub=name, target=name, options=options, on_message=EVENTS)
    for late in range(1, 3):
        context.broker.faults.add(delay(1.0, kind="Publish", direction="in", nth=late, scope="run"))
        calls = [
            context.begin("publish", 8.0, body=text(f"{name} {late}"), target=name, wait=True)
            for name in streams
        ]
        await context.ended(calls)
        await context.sleep(1)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def shared_declaration(context: ScriptContext) -> None:
    """Messages that have more time and less wait for one producer, the first answer about which is lost."""
    context.broker.create_stream("S")
    await context.connect()
    context.broker.faults.add(drop(kind="DeclarePublisherResponse", nth=1))
    calls = [
        context.begin("publish", seconds, body=text(f"m{seconds}"), **PUBLISH) for seconds in (1.5, 8.0, 4.0)
    ]
    await context.ended(calls)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False, costly=True)
async def full_line(context: ScriptContext) -> None:
    """No confirm comes, and more messages wait in vain for room than may wait; then another one does."""
    context.broker.create_stream("S")
    await context.connect()
    await context.op("publish", body=text("first"), **PUBLISH)
    context.broker.faults.add(drop(role="confirm", direction="out"))
    for number in range(MANY):
        context.begin("publish", 5.0, body={"gen": "zero", "len": LARGE + number}, **PUBLISH)
    await context.sleep(0.1)
    waiting = [context.begin("publish", 1.0, body=text(f"w{i}"), **PUBLISH) for i in range(LINE + 5)]
    await context.ended(waiting)
    await context.op("publish", 1.0, body=text("late"), **PUBLISH)
    await context.sleep(5)
    await context.finale("publish", **PROBE)
