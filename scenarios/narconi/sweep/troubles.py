"""Base scripts with a server that is silent, ends what it has, or answers late; and with a wrong clock."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import drop, latency, silent
from scenarios.narconi.sweep._shared import EVENTS, PROBE, PUBLISH, SETTLING, put, queues, watched
from scenarios.narconi.traits import PROJECT

BEAT_S = 10.0


@base(role="consumer", needs=["keepalive"])
async def kept_alive(context: ScriptContext) -> None:
    """The client asks again and again whether the server is there."""
    queues(context, "P", "C")
    put(context, "C", "m0", "m1")
    await context.connect(auto_reconnect=True, keepalive_s=BEAT_S)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    await context.op("publish", body=text("a"), **PUBLISH)
    await context.sleep(25)
    put(context, "C", "m2")
    await context.op("publish", body=text("b"), **PUBLISH)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["keepalive"], injections=False)
async def no_pongs(context: ScriptContext) -> None:
    """The server delivers, and answers no pings."""
    queues(context, "P", "C")
    await context.connect(auto_reconnect=True, keepalive_s=BEAT_S)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    context.broker.faults.add(drop(role="heartbeat", direction="out"))
    await context.sleep(90)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["keepalive"], injections=False)
async def busy_no_pongs(context: ScriptContext) -> None:
    """The server falls silent while the client goes on publishing, more often than it asks for a pong."""
    queues(context)
    await context.connect(auto_reconnect=True, keepalive_s=BEAT_S)
    await context.op("publish", body=text("first"), **PUBLISH)
    for name in list(context.broker.engine.connections):
        context.broker.faults.add(silent(on="idle", after_s=0.05, connection=name))
        context.killed.add(name)
    for number in range(30):
        context.begin("publish", 20 * BEAT_S, body=text(f"y{number}"), **PUBLISH)
        await context.sleep(BEAT_S / 4)
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["keepalive"], injections=False)
async def slow_pongs(context: ScriptContext) -> None:
    """The server answers each ping late, and in time."""
    queues(context, "P", "C")
    await context.connect(auto_reconnect=True, keepalive_s=BEAT_S)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    context.broker.faults.add(latency(0.8 * BEAT_S, role="heartbeat", direction="out"))
    await context.sleep(60)
    put(context, "C", "m0")
    await context.op("publish", body=text("a"), **PUBLISH)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["clock_offset"], injections=False)
async def wrong_clock(context: ScriptContext) -> None:
    """The clock of the wall jumps to and fro, while messages wait and while no side says anything."""
    queues(context, "P", "C")
    await context.connect(auto_reconnect=True)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    context.broker.faults.add(latency(0.3, role="confirm", direction="out"))
    context.broker.faults.add(latency(0.3, role="response", direction="out"))
    for number, offset_ms in enumerate((3_600_000, -3_600_000, 0)):
        calls = [context.begin("publish", body=text(f"a{number}"), **PUBLISH)]
        calls.append(context.begin("narc.take", target="nowhere"))
        await context.sleep(0.1)
        await context.op("set_clock", offset_ms=offset_ms)
        await context.ended(calls)
        put(context, "C", f"m{number}")
        await context.sleep(3)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def unanswered(context: ScriptContext) -> None:
    """A close while messages wait for confirms that do not come."""
    queues(context, "P", "R")
    await context.connect(auto_reconnect=True)
    for target in ("P", "R"):
        await context.op("publish", target=target, body=text(f"first{target}"), wait=True)
    context.broker.faults.add(drop(role="confirm", direction="out"))
    for number in range(3):
        context.begin("publish", 8.0, body=text(f"a{number}"), **PUBLISH)
        context.begin("publish", target="R", body=text(f"b{number}"), wait=False)
    context.begin("narc.take", 8.0, target="P")
    await context.sleep(0.1)
    await context.close()


@base(role="publisher", injections=False)
async def mixed_words(context: ScriptContext) -> None:
    """The server refuses messages in the middle of others that wait, over both ways."""
    queues(context)
    await context.connect(auto_reconnect=True)
    await context.op("publish", body=text("first"), **PUBLISH)
    for number in range(3):
        calls = [context.begin("publish", body=text(f"a{number}{i}"), **PUBLISH) for i in range(3)]
        calls.append(context.begin("publish", body={"gen": "rand", "seed": number, "len": 66_000}, **PUBLISH))
        calls += [context.begin("publish", body=text(f"b{number}{i}"), **PUBLISH) for i in range(3)]
        calls.append(
            context.begin("narc.post", target="P", body={"gen": "rand", "seed": 9, "len": 66_000 + number})
        )
        await context.ended(calls)
        await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def stale(context: ScriptContext) -> None:
    """What came over a connection that is gone is settled, twice, and after the end of the subscription."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(6)])
    await context.connect(auto_reconnect=True)
    options = {"ack": True, "limit": 3}
    await context.op("subscribe", sub="c1", target="C", options=options, on_message=EVENTS)
    await context.sleep(0.3)
    context.kill()
    await context.sleep(4)
    refs = [event["ref"] for event in context.adapter.events if event.event == "message"]
    for ref in (*refs[:2], *refs[3:5], *refs[4:5]):
        await context.op("settle", sub="c1", ref=ref, how="ack")
    await context.op("unsubscribe", sub="c1")
    for ref in refs[-1:]:
        await context.op("settle", sub="c1", ref=ref, how="ack")
    await context.op("subscribe", sub="c2", target="C", options={"ack": True}, on_message=SETTLING)
    await context.sleep(1)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def settled_across(context: ScriptContext) -> None:
    """Of three messages one is settled before the connection is lost, and the next one after that: on the new
    connection its number is that of the last one."""
    queues(context, "P", "C")
    put(context, "C", "first", "second", "third")
    await context.connect(auto_reconnect=True)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=EVENTS)
    for number in range(2):
        await context.sleep(2)
        refs = [event["ref"] for event in context.adapter.events if event.event == "message"]
        for ref in refs[number : number + 1]:
            await context.op("settle", sub="c1", ref=ref, how="ack")
        await context.sleep(0.5)
        if number == 0:
            context.kill()
            await context.sleep(4)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def for_once(context: ScriptContext) -> None:
    """Without reconnecting: what was lost stays lost, and a new subscription works."""
    queues(context, "P", "C", "D")
    put(context, "C", "m0", "m1")
    await context.connect(auto_reconnect=False)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    await context.sleep(0.3)
    context.kill("fin")
    await context.sleep(3)
    put(context, "D", "n0", "n1")
    await context.op("subscribe", sub="c2", target="D", options={"ack": True}, on_message=SETTLING)
    await context.op("subscribe", sub="c3", target="nowhere", options={"ack": True}, on_message=SETTLING)
    await context.sleep(1)
    await context.op("unsubscribe", sub="c1")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def left_alone(context: ScriptContext) -> None:
    """A subscription ends while its callback runs and messages wait, and again while it connects again."""
    queues(context, "P", "C", "D")
    for name in ("C", "D"):
        put(context, name, *[f"{name}{i}" for i in range(5)])
    await context.connect(auto_reconnect=True)
    lazy = {**SETTLING, "sleep_ms": 200}
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=lazy)
    await context.op("subscribe", sub="d1", target="D", options={"ack": True}, on_message=EVENTS)
    await context.sleep(0.3)
    await context.op("unsubscribe", sub="c1")
    context.kill()
    await context.sleep(0.2)
    await context.op("unsubscribe", sub="d1")
    await context.sleep(10)
    await context.op("subscribe", sub="d2", target="D", options={"ack": True}, on_message=SETTLING)
    await context.sleep(1)
    await watched(context, "D", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def complained(context: ScriptContext) -> None:
    """The server loses what is behind it, and a queue while it is consumed; it says so."""
    queues(context, "P", "C", "D")
    await context.connect(auto_reconnect=True)
    for sub, target in (("c1", "C"), ("d1", "D")):
        await context.op("subscribe", sub=sub, target=target, options={"ack": True}, on_message=SETTLING)
    await context.op("publish", body=text("a"), **PUBLISH)
    context.broker.lose_backend()
    await context.sleep(10)
    context.broker.delete_queue(PROJECT, "D")
    await context.sleep(10)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)
