"""Base scripts of applications that consume over WebSockets."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base
from fakebrokers.faults import latency
from scenarios.narconi.sweep._shared import EVENTS, LOOK_S, PROBE, SETTLING, put, queues, watched
from scenarios.narconi.traits import PROJECT

RICH = {"content_type": "text/plain", "headers": {"x-msg-x-trace": "ä1", "x-msg-x-n": "2"}}


@base(role="consumer", handshake=True)
async def consume(context: ScriptContext) -> None:
    """Every message is acknowledged by its callback, two at a time are allowed."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(5)])
    await context.connect(auto_reconnect=True)
    options = {"ack": True, "limit": 2}
    await context.op("subscribe", sub="c1", target="C", options=options, on_message=SETTLING)
    put(context, "C", "n0", "n1", **RICH)
    await context.sleep(1)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def deleted(context: ScriptContext) -> None:
    """Two queues are consumed, and one of them is deleted at the server before the client comes back."""
    queues(context, "P", "C", "D")
    await context.connect(auto_reconnect=True)
    for name in ("D", "C"):
        put(context, name, f"{name}0")
        await context.op("subscribe", sub=name, target=name, options={"ack": True}, on_message=SETTLING)
    await context.sleep(1)
    context.broker.delete_queue(PROJECT, "D")
    context.kill("rst")
    await context.sleep(1)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def at_once(context: ScriptContext) -> None:
    """Without acknowledgements: all that is there comes at once."""
    queues(context, "P", "C")
    put(context, "C", "m0", "m1", **RICH)
    await context.connect(auto_reconnect=True)
    await context.op("subscribe", sub="c1", target="C", on_message=EVENTS)
    put(context, "C", "m2", "m3", "")
    await context.sleep(1)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["encoding"])
async def encodings(context: ScriptContext) -> None:
    """Bodies inside the metadata, in every encoding."""
    names = ("utf8", "base64", "hex")
    queues(context, "P", *names)
    await context.connect(auto_reconnect=True)
    for name in names:
        put(context, name, "m0", "äöü€", "", **RICH)
        options = {"ack": True, "encoding": name}
        await context.op("subscribe", sub=name, target=name, options=options, on_message=SETTLING)
    await context.sleep(1)
    for name in names:
        put(context, name, "m2")
    await watched(context, "hex", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["encoding"], injections=False)
async def largest(context: ScriptContext) -> None:
    """The largest message that a server takes, in every encoding: in hex it is twice as long on the line."""
    names = ("utf8", "base64", "hex")
    queues(context, "P", *names)
    await context.connect(auto_reconnect=True)
    for name in names:
        put(context, name, "m0", "x" * context.broker.config.max_message_size, "m2")
        options = {"ack": True, "encoding": name}
        await context.op("subscribe", sub=name, target=name, options=options, on_message=SETTLING)
    await context.sleep(1)
    await watched(context, "hex", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def settle(context: ScriptContext) -> None:
    """The application acknowledges by itself, one by one and many at a time; some it leaves."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(8)])
    await context.connect(auto_reconnect=True)
    options = {"ack": True, "limit": 4}
    await context.op("subscribe", sub="c1", target="C", options=options, on_message=EVENTS)
    await context.sleep(0.5)
    refs = [event["ref"] for event in context.adapter.events if event.event == "message"]
    for ref in refs[1:2]:
        await context.op("settle", sub="c1", ref=ref, how="ack")
    for ref in refs[2:3]:
        await context.op("settle", sub="c1", ref=ref, how="ack_to")
        await context.op("settle", sub="c1", ref=ref, how="ack")
    for ref in refs[1:2]:  # it is settled already, and there is nothing before it
        await context.op("settle", sub="c1", ref=ref, how="ack_to")
    await context.sleep(1)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def settled_below(context: ScriptContext) -> None:
    """What one acknowledgement has settled with others is settled once more, each by itself."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(6)])
    await context.connect(auto_reconnect=True)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True, "limit": 4}, on_message=EVENTS)
    await context.sleep(0.5)
    refs = [event["ref"] for event in context.adapter.events if event.event == "message"]
    for ref in refs[2:3]:
        await context.op("settle", sub="c1", ref=ref, how="ack_to")
    for ref in refs[:4]:
        await context.op("settle", sub="c1", ref=ref, how="ack")
    await context.sleep(1)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def settled_past_nine(context: ScriptContext) -> None:
    """One acknowledgement for all up to a delivery where ids get one digit more; then each of the others."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(14)])
    await context.connect(auto_reconnect=True)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True, "limit": 20}, on_message=EVENTS)
    await context.sleep(0.5)
    refs = [event["ref"] for event in context.adapter.events if event.event == "message"]
    for ref in refs[8:9]:
        await context.op("settle", sub="c1", ref=ref, how="ack_to")
    for ref in refs[9:]:
        await context.op("settle", sub="c1", ref=ref, how="ack")
    await context.sleep(1)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def drained(context: ScriptContext) -> None:
    """A graceful end while messages come, then another subscription of the same queue."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(6)])
    await context.connect(auto_reconnect=True)
    lazy = {**SETTLING, "sleep_ms": 100}
    options = {"ack": True, "limit": 3}
    await context.op("subscribe", sub="c1", target="C", options=options, on_message=lazy)
    await context.sleep(0.15)
    await context.op("unsubscribe", 5.0, sub="c1", drain=True)
    await context.op("subscribe", sub="c2", target="C", options=options, on_message=SETTLING)
    await context.sleep(1)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def drained_and_lost(context: ScriptContext) -> None:
    """Without reconnecting: the connection is lost while a graceful end waits for the server."""
    queues(context, "P", "C")
    put(context, "C", "m0", "m1")
    await context.connect(auto_reconnect=False)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=SETTLING)
    await context.sleep(0.5)
    context.broker.faults.add(latency(2.0, direction="out"))
    ending = context.begin("unsubscribe", 5.0, sub="c1", drain=True)
    await context.sleep(0.5)
    context.kill("rst")
    await ending
    await context.finale()


@base(role="consumer", injections=False)
async def drained_by_hand(context: ScriptContext) -> None:
    """A graceful end that has to wait for the application: it acknowledges all, or not everything."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(8)])
    await context.connect(auto_reconnect=True)
    options = {"ack": True, "limit": 3}
    for sub, most in (("c1", 3), ("c2", 1)):
        await context.op("subscribe", sub=sub, target="C", options=options, on_message=EVENTS)
        await context.sleep(0.3)
        ending = context.begin("unsubscribe", sub=sub, drain=True)
        await context.sleep(0.3)
        came = [event for event in context.adapter.events if event.event == "message" and event["sub"] == sub]
        for event in came[:most]:
            await context.op("settle", sub=sub, ref=event["ref"], how="ack")
        await ending
    await context.op("subscribe", sub="c3", target="C", options=options, on_message=SETTLING)
    await context.sleep(1)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def one_is_slow(context: ScriptContext) -> None:
    """Two queues, one of whose callbacks takes its time; the messages of the other one come meanwhile."""
    queues(context, "P", "C", "D")
    await context.connect(auto_reconnect=True)
    slow = {**SETTLING, "sleep_ms": 5000}
    await context.op("subscribe", sub="slow", target="D", options={"ack": True}, on_message=slow)
    await context.op("subscribe", sub="quick", target="C", options={"ack": True}, on_message=SETTLING)
    put(context, "D", "long")
    for number in range(3):
        await context.sleep(0.5)
        put(context, "C", f"m{number}")
    await context.sleep(LOOK_S)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def one_ends(context: ScriptContext) -> None:
    """Of four subscriptions, two of which share a queue, one ends after the other; messages come for those
    that are left."""
    queues(context, "P", "C", "D")
    await context.connect(auto_reconnect=True)
    for sub, target in (("c1", "C"), ("d1", "D"), ("c2", "C"), ("d2", "D")):
        await context.op("subscribe", sub=sub, target=target, options={"ack": True}, on_message=SETTLING)
    for sub in ("c1", "d2", "c2"):
        for target in ("C", "D"):
            put(context, target, *[f"{target} before {sub} {number}" for number in range(3)])
        await context.sleep(1)
        await context.op("unsubscribe", sub=sub)
        await context.sleep(1)
    await watched(context, "D", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def drained_unacknowledged(context: ScriptContext) -> None:
    """A graceful end while messages that need no acknowledgement wait for a slow callback."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(5)])
    await context.connect(auto_reconnect=True)
    lazy = {**EVENTS, "sleep_ms": 300}
    await context.op("subscribe", sub="c1", target="C", on_message=lazy)
    await context.sleep(0.4)
    await context.op("unsubscribe", 8.0, sub="c1", drain=True)
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def replaced(context: ScriptContext) -> None:
    """Subscriptions that end at once, and are replaced, while messages wait for a slow callback: some that
    have to be acknowledged, and some that have not."""
    queues(context, "P", "C")
    await context.connect(auto_reconnect=True)
    for number, ack in enumerate((False, True, False)):
        lazy = {"mode": "event", "sleep_ms": 1500}
        options = {"ack": True, "limit": 5} if ack else {}
        await context.op("subscribe", sub=f"c{number}", target="C", options=options, on_message=lazy)
        put(context, "C", *[f"{number}{i}" for i in range(4)])
        await context.sleep(0.5)
        await context.op("unsubscribe", 5.0, sub=f"c{number}")
        await context.sleep(number)
    await context.op("subscribe", sub="c3", target="C", options={"ack": True}, on_message=SETTLING)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def drained_of_many(context: ScriptContext) -> None:
    """A graceful end after several messages were acknowledged by one word: there is nothing to wait for."""
    queues(context, "P", "C")
    put(context, "C", *[f"m{i}" for i in range(3)])
    await context.connect(auto_reconnect=True)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=EVENTS)
    await context.sleep(0.5)
    refs = [event["ref"] for event in context.adapter.events if event.event == "message"]
    for ref in refs[-1:]:
        await context.op("settle", sub="c1", ref=ref, how="ack_to")
    await context.op("unsubscribe", 5.0, sub="c1", drain=True)
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def settled_last(context: ScriptContext) -> None:
    """The application acknowledges right before it ends a subscription, and right before the session."""
    queues(context, "P", "C", "D")
    await context.connect(auto_reconnect=True)
    for sub in ("C", "D"):
        put(context, sub, "m0", "m1")
        await context.op(
            "subscribe", sub=sub, target=sub, options={"ack": True, "limit": 4}, on_message=EVENTS
        )
    await context.sleep(1)
    for sub in ("C", "D"):
        for event in [
            each for each in context.adapter.events if each.event == "message" and each["sub"] == sub
        ]:
            await context.op("settle", sub=sub, ref=event["ref"], how="ack")
        if sub == "C":
            await context.op("unsubscribe", sub=sub)
    await context.close()
