"""Base scripts of applications that use HTTP."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import fault, latency
from fakebrokers.narconi.faults import HttpAnswer
from scenarios.narconi.sweep._shared import PROBE, PUBLISH, put, queues

RICH = {"content_type": "text/plain", "headers": {"x-msg-x-trace": "1"}}


@base(role="http")
async def ask(context: ScriptContext) -> None:
    """Requests one after the other over a connection that is kept."""
    queues(context, "P", "C")
    put(context, "C", "m0", "m1", **RICH)
    await context.connect(auto_reconnect=True)
    await context.op("narc.ensure_queue", target="N")
    for number in range(2):
        headers = {"Content-Type": "text/plain", "x-msg-x-n": str(number)}
        await context.op("narc.post", target="N", body=text(f"h{number}"), headers=headers)
        await context.op("narc.take", target="C")
    await context.op("narc.take", target="C")
    await context.op("narc.take", target="N")
    await context.op("narc.delete_queue", target="N")
    await context.op("narc.post", target="N", body=text("late"))
    await context.op("narc.take", target="nowhere")
    await context.finale("narc.ensure_queue", target="P")


@base(role="http", injections=False)
async def refused_for_reasons(context: ScriptContext) -> None:
    """Requests and upgrades are refused with one status after the other, as a gateway may refuse them."""
    context.notes.lies = True
    queues(context, "P")
    await context.connect(auto_reconnect=True)
    for status in (401, 403, 400, 409, 429, 500):
        names = [
            context.broker.faults.add(fault(HttpAnswer(status=status, close=True), kind=kind, direction="in"))
            for kind in ("HttpPublish", "EnsureQueue", "WsUpgrade")
        ]
        await context.op("narc.post", target="P", body=text(f"h{status}"))
        await context.op("narc.ensure_queue", target="P")
        await context.op("publish", body=text(f"w{status}"), **PUBLISH)
        for name in names:
            context.broker.faults.remove(name)
        await context.op("narc.post", target="P", body=text(f"after {status}"))
    await context.finale("narc.ensure_queue", target="P")


@base(role="http", injections=False)
async def idle(context: ScriptContext) -> None:
    """The server ends the connection that is kept, while no request needs it; the next one works."""
    queues(context, "P")
    await context.connect(auto_reconnect=True)
    for how in ("fin", "rst"):
        await context.op("narc.ensure_queue", target="P")
        context.kill(how)
        await context.sleep(1)
        await context.op("narc.post", target="P", body=text(f"after {how}"))
        await context.op("narc.take", target="P")
    await context.finale("narc.ensure_queue", target="P")


@base(role="http")
async def crowd(context: ScriptContext) -> None:
    """Many requests at a time, ok and refused ones mixed."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(3)])
    await context.connect(auto_reconnect=True)
    for number in range(2):
        await context.ended(
            [
                context.begin("narc.post", target="P", body=text(f"a{number}")),
                context.begin("narc.take", target="C"),
                context.begin("narc.post", target="nowhere", body=text(f"b{number}")),
                context.begin("narc.ensure_queue", target=f"N{number}"),
                context.begin("narc.delete_queue", target=f"X{number}"),
                context.begin("narc.take", target="empty"),
            ]
        )
    await context.finale("narc.ensure_queue", target="P")


@base(role="http", needs=["cancel"])
async def cancelled(context: ScriptContext) -> None:
    """Ops that are cancelled while they are open; the next ones get the answers that are theirs."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(8)])
    await context.connect(auto_reconnect=True)
    context.broker.faults.add(latency(0.2, role="response", direction="out"))
    for number in range(3):
        calls = [
            context.begin("narc.take", target="C"),
            context.begin("publish", target="P", body=text(f"{number}")),
        ]
        await context.sleep(0.05)
        for call in calls:
            await context.adapter.cancel(call)
        await context.op("narc.post", target="P", body=text(f"p{number}"))
        await context.op("publish", target="P", body=text(f"q{number}"), wait=True)
    await context.finale("publish", **PROBE)
