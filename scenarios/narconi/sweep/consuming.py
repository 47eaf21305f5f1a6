"""Base scripts of applications that consume over WebSockets."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base
from scenarios.narconi.sweep._shared import EVENTS, PROBE, SETTLING, put, queues, watched

RICH = {"content_type": "text/plain", "headers": {"x-msg-x-trace": "ä1", "x-msg-x-n": "2"}}


@base(role="consumer", handshake=True)
async def consume(stage: ScriptContext) -> None:
    """Every message is acknowledged by its callback, two at a time are allowed."""
    queues(stage, "P", "C")
    put(stage, "C", *[f"m{i}" for i in range(5)])
    await stage.connect(auto_reconnect=True)
    options = {"ack": True, "limit": 2}
    await stage.op("subscribe", sub="c1", target="C", options=options, on_message=SETTLING)
    put(stage, "C", "n0", "n1", **RICH)
    await stage.sleep(1)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer")
async def at_once(stage: ScriptContext) -> None:
    """Without acknowledgements: all that is there comes at once."""
    queues(stage, "P", "C")
    put(stage, "C", "m0", "m1", **RICH)
    await stage.connect(auto_reconnect=True)
    await stage.op("subscribe", sub="c1", target="C", on_message=EVENTS)
    put(stage, "C", "m2", "m3", "")
    await stage.sleep(1)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer", needs=["encoding"])
async def encodings(stage: ScriptContext) -> None:
    """Bodies inside the metadata, in every encoding."""
    names = ("utf8", "base64", "hex")
    queues(stage, "P", *names)
    await stage.connect(auto_reconnect=True)
    for name in names:
        put(stage, name, "m0", "äöü€", "", **RICH)
        options = {"ack": True, "encoding": name}
        await stage.op("subscribe", sub=name, target=name, options=options, on_message=SETTLING)
    await stage.sleep(1)
    for name in names:
        put(stage, name, "m2")
    await watched(stage, "hex", "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer")
async def settle(stage: ScriptContext) -> None:
    """The application acknowledges by itself, one by one and many at a time; some it leaves."""
    queues(stage, "P", "C")
    put(stage, "C", *[f"m{i}" for i in range(8)])
    await stage.connect(auto_reconnect=True)
    options = {"ack": True, "limit": 4}
    await stage.op("subscribe", sub="c1", target="C", options=options, on_message=EVENTS)
    await stage.sleep(0.5)
    refs = [event["ref"] for event in stage.adapter.events if event.event == "message"]
    for ref in refs[1:2]:
        await stage.op("settle", sub="c1", ref=ref, how="ack")
    for ref in refs[2:3]:
        await stage.op("settle", sub="c1", ref=ref, how="ack_to")
        await stage.op("settle", sub="c1", ref=ref, how="ack")
    await stage.sleep(1)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer")
async def drained(stage: ScriptContext) -> None:
    """A graceful end while messages come, then another subscription of the same queue."""
    queues(stage, "P", "C")
    put(stage, "C", *[f"m{i}" for i in range(6)])
    await stage.connect(auto_reconnect=True)
    lazy = {**SETTLING, "sleep_ms": 100}
    options = {"ack": True, "limit": 3}
    await stage.op("subscribe", sub="c1", target="C", options=options, on_message=lazy)
    await stage.sleep(0.15)
    await stage.op("unsubscribe", 5.0, sub="c1", drain=True)
    await stage.op("subscribe", sub="c2", target="C", options=options, on_message=SETTLING)
    await stage.sleep(1)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer", bends=False)
async def drained_by_hand(stage: ScriptContext) -> None:
    """A graceful end that has to wait for the application: it acknowledges all, or not everything."""
    queues(stage, "P", "C")
    put(stage, "C", *[f"m{i}" for i in range(8)])
    await stage.connect(auto_reconnect=True)
    options = {"ack": True, "limit": 3}
    for sub, most in (("c1", 3), ("c2", 1)):
        await stage.op("subscribe", sub=sub, target="C", options=options, on_message=EVENTS)
        await stage.sleep(0.3)
        ending = stage.begin("unsubscribe", sub=sub, drain=True)
        await stage.sleep(0.3)
        came = [event for event in stage.adapter.events if event.event == "message" and event["sub"] == sub]
        for event in came[:most]:
            await stage.op("settle", sub=sub, ref=event["ref"], how="ack")
        await ending
    await stage.op("subscribe", sub="c3", target="C", options=options, on_message=SETTLING)
    await stage.sleep(1)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)
