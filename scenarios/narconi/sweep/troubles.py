"""Base scripts with a server that is silent, ends what it has, or answers late; and with a wrong clock."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import drop, latency
from scenarios.narconi.sweep._shared import EVENTS, PROBE, PUBLISH, SETTLING, put, queues, watched
from scenarios.narconi.traits import PROJECT

BEAT_S = 10.0


@base(role="consumer", needs=["keepalive"])
async def kept_alive(stage: ScriptContext) -> None:
    """The client asks again and again whether the server is there."""
    queues(stage, "P", "C")
    put(stage, "C", "m0", "m1")
    await stage.connect(auto_reconnect=True, keepalive_s=BEAT_S)
    await stage.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    await stage.op("publish", body=text("a"), **PUBLISH)
    await stage.sleep(25)
    put(stage, "C", "m2")
    await stage.op("publish", body=text("b"), **PUBLISH)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer", needs=["keepalive"], bends=False)
async def no_pongs(stage: ScriptContext) -> None:
    """The server delivers, and answers no pings."""
    queues(stage, "P", "C")
    await stage.connect(auto_reconnect=True, keepalive_s=BEAT_S)
    await stage.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    stage.broker.faults.add(drop(role="heartbeat", direction="out"))
    await stage.sleep(90)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer", needs=["keepalive"], bends=False)
async def slow_pongs(stage: ScriptContext) -> None:
    """The server answers each ping late, and in time."""
    queues(stage, "P", "C")
    await stage.connect(auto_reconnect=True, keepalive_s=BEAT_S)
    await stage.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    stage.broker.faults.add(latency(0.8 * BEAT_S, role="heartbeat", direction="out"))
    await stage.sleep(60)
    put(stage, "C", "m0")
    await stage.op("publish", body=text("a"), **PUBLISH)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)


@base(role="publisher", needs=["clock_offset"], bends=False)
async def wrong_clock(stage: ScriptContext) -> None:
    """The clock of the wall jumps to and fro, while messages wait and while no side says anything."""
    queues(stage, "P", "C")
    await stage.connect(auto_reconnect=True)
    await stage.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    stage.broker.faults.add(latency(0.3, role="confirm", direction="out"))
    stage.broker.faults.add(latency(0.3, role="response", direction="out"))
    for number, offset_ms in enumerate((3_600_000, -3_600_000, 0)):
        calls = [stage.begin("publish", body=text(f"a{number}"), **PUBLISH)]
        calls.append(stage.begin("narc.take", target="nowhere"))
        await stage.sleep(0.1)
        await stage.op("set_clock", offset_ms=offset_ms)
        await stage.ended(calls)
        put(stage, "C", f"m{number}")
        await stage.sleep(3)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)


@base(role="publisher")
async def unanswered(stage: ScriptContext) -> None:
    """A close while messages wait for confirms that do not come."""
    queues(stage, "P", "R")
    await stage.connect(auto_reconnect=True)
    for target in ("P", "R"):
        await stage.op("publish", target=target, body=text(f"first{target}"), wait=True)
    stage.broker.faults.add(drop(role="confirm", direction="out"))
    for number in range(3):
        stage.begin("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        stage.begin("publish", target="R", body=text(f"b{number}"), wait=False)
    stage.begin("narc.take", 8.0, target="P")
    await stage.sleep(0.1)
    await stage.close()


@base(role="publisher", bends=False)
async def mixed_words(stage: ScriptContext) -> None:
    """The server refuses messages in the middle of others that wait, over both ways."""
    queues(stage)
    await stage.connect(auto_reconnect=True)
    await stage.op("publish", body=text("first"), **PUBLISH)
    for number in range(3):
        calls = [stage.begin("publish", body=text(f"a{number}{i}"), **PUBLISH) for i in range(3)]
        calls.append(stage.begin("publish", body={"gen": "rand", "seed": number, "len": 66_000}, **PUBLISH))
        calls += [stage.begin("publish", body=text(f"b{number}{i}"), **PUBLISH) for i in range(3)]
        calls.append(
            stage.begin("narc.post", target="P", body={"gen": "rand", "seed": 9, "len": 66_000 + number})
        )
        await stage.ended(calls)
        await stage.sleep(3)
    await stage.finale("publish", **PROBE)


@base(role="consumer")
async def stale(stage: ScriptContext) -> None:
    """What came over a connection that is gone is settled, twice, and after the end of the subscription."""
    queues(stage, "P", "C")
    put(stage, "C", *[f"m{i}" for i in range(6)])
    await stage.connect(auto_reconnect=True)
    options = {"ack": True, "limit": 3}
    await stage.op("subscribe", sub="c1", target="C", options=options, on_message=EVENTS)
    await stage.sleep(0.3)
    stage.kill()
    await stage.sleep(4)
    refs = [event["ref"] for event in stage.adapter.events if event.event == "message"]
    for ref in (*refs[:2], *refs[3:5], *refs[4:5]):
        await stage.op("settle", sub="c1", ref=ref, how="ack")
    await stage.op("unsubscribe", sub="c1")
    for ref in refs[-1:]:
        await stage.op("settle", sub="c1", ref=ref, how="ack")
    await stage.op("subscribe", sub="c2", target="C", options={"ack": True}, on_message=SETTLING)
    await stage.sleep(1)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer")
async def for_once(stage: ScriptContext) -> None:
    """Without reconnecting: what was lost stays lost, and a new subscription works."""
    queues(stage, "P", "C", "D")
    put(stage, "C", "m0", "m1")
    await stage.connect(auto_reconnect=False)
    await stage.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    await stage.sleep(0.3)
    stage.kill("fin")
    await stage.sleep(3)
    put(stage, "D", "n0", "n1")
    await stage.op("subscribe", sub="c2", target="D", options={"ack": True}, on_message=SETTLING)
    await stage.op("subscribe", sub="c3", target="nowhere", options={"ack": True}, on_message=SETTLING)
    await stage.sleep(1)
    await stage.op("unsubscribe", sub="c1")
    await stage.finale("publish", **PROBE)


@base(role="consumer")
async def left_alone(stage: ScriptContext) -> None:
    """A subscription ends while its callback runs and messages wait, and again while it connects again."""
    queues(stage, "P", "C", "D")
    for name in ("C", "D"):
        put(stage, name, *[f"{name}{i}" for i in range(5)])
    await stage.connect(auto_reconnect=True)
    lazy = {**SETTLING, "sleep_ms": 200}
    await stage.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=lazy)
    await stage.op("subscribe", sub="d1", target="D", options={"ack": True}, on_message=EVENTS)
    await stage.sleep(0.3)
    await stage.op("unsubscribe", sub="c1")
    stage.kill()
    await stage.sleep(0.2)
    await stage.op("unsubscribe", sub="d1")
    await stage.sleep(10)
    await stage.op("subscribe", sub="d2", target="D", options={"ack": True}, on_message=SETTLING)
    await stage.sleep(1)
    await watched(stage, "D", "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer", bends=False)
async def complained(stage: ScriptContext) -> None:
    """The server loses what is behind it, and a queue while it is consumed; it says so."""
    queues(stage, "P", "C", "D")
    await stage.connect(auto_reconnect=True)
    for sub, target in (("c1", "C"), ("d1", "D")):
        await stage.op("subscribe", sub=sub, target=target, options={"ack": True}, on_message=SETTLING)
    await stage.op("publish", body=text("a"), **PUBLISH)
    stage.broker.lose_backend()
    await stage.sleep(10)
    stage.broker.delete_queue(PROJECT, "D")
    await stage.sleep(10)
    await watched(stage, "C", "last")
    await stage.finale("publish", **PROBE)
