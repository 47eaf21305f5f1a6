"""Base scripts of applications that publish over WebSockets."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from scenarios.narconi.sweep._shared import PROBE, PUBLISH, queues

HEADERS = {"Content-Type": "text/plain", "x-msg-x-trace": "ä1"}


@base(role="publisher", handshake=True)
async def publish(stage: ScriptContext) -> None:
    """Several messages at a time that wait for their confirms, with metadata and without."""
    queues(stage)
    await stage.connect(auto_reconnect=True)
    for window in range(2):
        await stage.ended(
            [
                stage.begin("publish", body=text(f"{window}{number}"), headers=headers, **PUBLISH)
                for number, headers in enumerate(({}, HEADERS, {}, HEADERS))
            ]
        )
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def unwaited(stage: ScriptContext) -> None:
    """Messages whose outcomes are reported later, to two queues."""
    queues(stage, "P", "R")
    await stage.connect(auto_reconnect=True)
    for number in range(4):
        for target in ("P", "R"):
            stage.begin("publish", target=target, body=text(f"{target}{number}"), wait=False)
    await stage.sleep(3)
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def alone(stage: ScriptContext) -> None:
    """Without reconnecting: the next message makes the next connection."""
    queues(stage)
    await stage.connect(auto_reconnect=False)
    await stage.ended([stage.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(3)])
    await stage.op("state")
    stage.kill("fin")
    await stage.sleep(0.5)
    for number in range(2):
        await stage.op("publish", body=text(f"z{number}"), **PUBLISH)
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def refused(stage: ScriptContext) -> None:
    """Queues that are not there, messages that are too large, and good ones in between."""
    queues(stage)
    stage.notes.oversized = True
    await stage.connect(auto_reconnect=True)
    large = {"gen": "rand", "seed": 1, "len": 65_537}
    for number in range(2):
        await stage.op("publish", target="nowhere", body=text(f"n{number}"), wait=True)
        await stage.op("publish", body=text(f"g{number}"), **PUBLISH)
    stage.begin("publish", body=text("before"), **PUBLISH)
    stage.begin("publish", body=large, **PUBLISH)
    await stage.op("publish", body=text("behind"), **PUBLISH)
    await stage.sleep(3)
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def sizes(stage: ScriptContext) -> None:
    """Bodies at the ends of every length that a frame can have."""
    queues(stage)
    await stage.connect(auto_reconnect=True)
    for size in (0, 1, 125, 126, 127, 65_535, 65_536):
        await stage.op("publish", body={"gen": "rand", "seed": size, "len": size}, **PUBLISH)
    await stage.op("publish", body={"b64": "AP+AfwoN"}, **PUBLISH)
    await stage.finale("publish", **PROBE)
