"""Base scripts of producers."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.pzq.faults import refuse_message
from scenarios.pzq.sweep._shared import PROBE, PUBLISH


@base(role="publisher")
async def waited(stage: ScriptContext) -> None:
    """Publishes that wait for their outcomes, one after the other and some at a time."""
    await stage.connect()
    await stage.op("publish", body=text("a"), **PUBLISH)
    await stage.ended([stage.begin("publish", body=text(f"b{i}"), **PUBLISH) for i in range(4)])
    await stage.op("publish", body=text("c"), key="own", **PUBLISH)
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def unwaited(stage: ScriptContext) -> None:
    """Publishes whose outcomes come as events."""
    await stage.connect()
    for number in range(5):
        await stage.op("publish", target="", wait=False, body=text(f"a{number}"))
    await stage.sleep(3)
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def bodies(stage: ScriptContext) -> None:
    """Bodies of several parts, of empty ones, of bytes that are no text, and large ones."""
    await stage.connect()
    large = {"gen": "rand", "seed": 1, "len": 100_000}
    for body in (
        [text("a"), text("b")],
        [text("c"), text(""), text("")],
        [text(""), text("d")],
        text(""),
        {"b64": "/wD+AA=="},
        [text("REPLICA:e")],
        large,
    ):
        await stage.op("publish", body=body, **PUBLISH)
    await stage.finale("publish", **PROBE)


@base(role="publisher", needs=["caller_key"])
async def ids(stage: ScriptContext) -> None:
    """Ids of all shapes that the application gives, the same one again too."""
    await stage.connect()
    for number, key in enumerate(("k1", "", {"b64": "/wD+"}, "x" * 300, "k1", {"b64": "AA=="}, "äö", "1")):
        await stage.op("publish", body=text(f"a{number}"), key=key, **PUBLISH)
    calls = [stage.begin("publish", body=text(f"b{key}"), key=key, **PUBLISH) for key in ("p", "q", "pq")]
    await stage.ended(calls)
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def refused(stage: ScriptContext) -> None:
    """Messages that the broker does not store, between some that it does."""
    stage.broker.faults.add(refuse_message("disk full", every=2))
    await stage.connect()
    await stage.ended([stage.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(4)])
    for number in range(3):
        await stage.op("publish", body=text(f"b{number}"), **PUBLISH)
    await stage.finale("publish", **PROBE)


@base(role="publisher", needs=["cancel"])
async def cancelled(stage: ScriptContext) -> None:
    """Ops that are cancelled while they are open; the next ones get the answers that are theirs."""
    await stage.connect()
    for number in range(2):
        call = stage.begin("publish", body=text(f"a{number}"), key=f"k{number}", **PUBLISH)
        await stage.adapter.cancel(call)
        await stage.op("publish", body=text(f"b{number}"), **PUBLISH)
    asked = stage.begin("pzq.monitor")
    await stage.adapter.cancel(asked)
    await stage.op("pzq.monitor")
    await stage.finale("publish", **PROBE)


@base(role="publisher", bends=False, costly=True)
async def bulk(stage: ScriptContext) -> None:
    """Many messages at a time."""
    await stage.connect()
    calls = [stage.begin("publish", 10.0, body=text(f"a{i}"), **PUBLISH) for i in range(200)]
    await stage.ended(calls)
    await stage.finale("publish", **PROBE)
