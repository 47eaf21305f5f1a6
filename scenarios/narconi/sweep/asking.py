"""Base scripts of applications that use HTTP."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import latency
from scenarios.narconi.sweep._shared import PROBE, put, queues

RICH = {"content_type": "text/plain", "headers": {"x-msg-x-trace": "1"}}


@base(role="http")
async def ask(stage: ScriptContext) -> None:
    """Requests one after the other over a connection that is kept."""
    queues(stage, "P", "C")
    put(stage, "C", "m0", "m1", **RICH)
    await stage.connect(auto_reconnect=True)
    await stage.op("narc.ensure_queue", target="N")
    for number in range(2):
        headers = {"Content-Type": "text/plain", "x-msg-x-n": str(number)}
        await stage.op("narc.post", target="N", body=text(f"h{number}"), headers=headers)
        await stage.op("narc.take", target="C")
    await stage.op("narc.take", target="C")
    await stage.op("narc.take", target="N")
    await stage.op("narc.delete_queue", target="N")
    await stage.op("narc.post", target="N", body=text("late"))
    await stage.op("narc.take", target="nowhere")
    await stage.finale("narc.ensure_queue", target="P")


@base(role="http")
async def crowd(stage: ScriptContext) -> None:
    """Many requests at a time, ok and refused ones mixed."""
    queues(stage, "P", "C")
    put(stage, "C", *[f"m{i}" for i in range(3)])
    await stage.connect(auto_reconnect=True)
    for number in range(2):
        await stage.ended(
            [
                stage.begin("narc.post", target="P", body=text(f"a{number}")),
                stage.begin("narc.take", target="C"),
                stage.begin("narc.post", target="nowhere", body=text(f"b{number}")),
                stage.begin("narc.ensure_queue", target=f"N{number}"),
                stage.begin("narc.delete_queue", target=f"X{number}"),
                stage.begin("narc.take", target="empty"),
            ]
        )
    await stage.finale("narc.ensure_queue", target="P")


@base(role="http", needs=["cancel"])
async def cancelled(stage: ScriptContext) -> None:
    """Ops that are cancelled while they are open; the next ones get the answers that are theirs."""
    queues(stage, "P", "C")
    put(stage, "C", *[f"m{i}" for i in range(8)])
    await stage.connect(auto_reconnect=True)
    stage.broker.faults.add(latency(0.2, role="response", direction="out"))
    for number in range(3):
        calls = [
            stage.begin("narc.take", target="C"),
            stage.begin("publish", target="P", body=text(f"{number}")),
        ]
        await stage.sleep(0.05)
        for call in calls:
            await stage.adapter.cancel(call)
        await stage.op("narc.post", target="P", body=text(f"p{number}"))
        await stage.op("publish", target="P", body=text(f"q{number}"), wait=True)
    await stage.finale("publish", **PROBE)
