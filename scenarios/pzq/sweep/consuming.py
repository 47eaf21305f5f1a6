"""Base scripts of consumers."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base
from scenarios._servers import in_turns, second_server
from scenarios.pzq.sweep._shared import (
    ACKING,
    EVENTS,
    PATIENT,
    PROBE,
    QUICK,
    put,
    settle_all,
    subscribed,
    watched,
)

#: Keys that are told apart only by their bytes.
ALIKE = (b"\x80\x01", b"\x81\x01", b"a\x00b", b"a\x00c", "\u00e9".encode(), "e\u0301".encode())
FLOOD = 2500  #: messages


@base(role="consumer")
async def consume(context: ScriptContext) -> None:
    """Messages that are acknowledged as they come."""
    put(context, *[f"m{i}" for i in range(4)])
    await context.connect()
    await subscribed(context, ACKING)
    await context.sleep(3)
    put(context, "late")
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def by_hand(context: ScriptContext) -> None:
    """Messages of several parts that the application settles later, in another order, and some twice."""
    for parts in ((b"a", b"b"), (b"c", b"", b""), (b"", b"d"), (b"e",), (b"\xff\x00",)):
        context.broker.publish(*parts)
    await context.connect()
    await subscribed(context, EVENTS)
    await context.sleep(1)
    await settle_all(context, "ack", backwards=True)
    await settle_all(context, "ack")
    await watched(context, "last")
    await settle_all(context, "ack")
    await context.finale("publish", **PROBE)


@base(role="consumer", server=QUICK)
async def given_back(context: ScriptContext) -> None:
    """Messages that are given back at first, and acknowledged when they come again."""
    put(context, "m0", "m1", "m2")
    await context.connect()
    await subscribed(context, EVENTS)
    await context.sleep(0.3)
    await settle_all(context, "nack")
    await context.sleep(0.3)
    await settle_all(context, "ack")
    await watched(context, "last")
    await settle_all(context, "ack")
    await context.finale("publish", **PROBE)


@base(role="consumer", server=QUICK)
async def expiring(context: ScriptContext) -> None:
    """Messages that expire and come again, before they are acknowledged; and once more after that."""
    put(context, "m0", "m1")
    await context.connect()
    await subscribed(context, EVENTS)
    await context.sleep(3.2)
    await settle_all(context, "ack")
    await context.sleep(1)
    keys = [message.key for message in context.broker.messages()]
    put(context, "m2")
    await context.sleep(0.2)
    keys = [message.key for message in context.broker.messages() if message.key not in keys]
    await settle_all(context, "ack")
    await context.sleep(0.5)
    for key in keys:
        if key not in [message.key for message in context.broker.messages()]:
            context.broker.publish(b"m2", key=key)
    await context.sleep(2)
    await context.finale("publish", **PROBE)


@base(role="consumer", server=QUICK)
async def slow(context: ScriptContext) -> None:
    """Callbacks that take longer than the ack timeout."""
    put(context, "m0", "m1", "m2")
    await context.connect()
    await subscribed(context, {**ACKING, "sleep_ms": 700})
    await context.sleep(8)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["callback_raise"])
async def failing(context: ScriptContext) -> None:
    """Callbacks that fail: the message is given back and comes again."""
    put(context, "m0", "m1", "m2")
    await context.connect()
    await subscribed(context, {"mode": "event", "raise_on": [1, 3]})
    await context.sleep(2)
    await settle_all(context, "ack")
    await watched(context, "last")
    await settle_all(context, "ack")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["filter_expired"], server=QUICK)
async def filtered(context: ScriptContext) -> None:
    """What has expired while it waited for a slow callback is dropped, and comes again."""
    put(context, "m0", "m1", "m2")
    await context.connect()
    await subscribed(context, {**ACKING, "sleep_ms": 1500, "sleep_on": [1]}, filter_expired=True)
    await context.sleep(6)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["filter_expired"], server=PATIENT)
async def in_time(context: ScriptContext) -> None:
    """What waits for a callback for most of the ack timeout, and not for all of it, has not expired."""
    put(context, "m0", "m1", "m2")
    await context.connect()
    await subscribed(context, {**ACKING, "sleep_ms": 1400, "sleep_on": [1]}, filter_expired=True)
    await context.sleep(6)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False, costly=True)
async def flood(context: ScriptContext) -> None:
    """Far more messages than a callback that takes its time has been through."""
    await context.connect()
    await subscribed(context, {**ACKING, "sleep_ms": 2000, "sleep_on": [1]})
    put(context, *[f"m{number}" for number in range(FLOOD)])
    await context.sleep(4)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", server=QUICK)
async def several(context: ScriptContext) -> None:
    """Two consumers that share the messages."""
    await context.connect()
    await subscribed(context, ACKING)
    await subscribed(context, ACKING, "c2")
    put(context, *[f"m{i}" for i in range(6)])
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", server=QUICK, injections=False)
async def one_ends(context: ScriptContext) -> None:
    """Of three consumers one ends, then another one; the messages after that are for those that are left."""
    await context.connect()
    for sub in ("c1", "c2", "c3"):
        await subscribed(context, ACKING, sub)
    put(context, "a0", "a1", "a2")
    await context.sleep(1)
    for sub in ("c2", "c1"):
        await context.op("unsubscribe", sub=sub)
        await context.sleep(2)
        put(context, *[f"{sub}-{number}" for number in range(4)])
        await context.sleep(3)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def alike_keys(context: ScriptContext) -> None:
    """Messages whose keys are told apart only by their bytes are acknowledged one after the other."""
    await context.connect()
    await subscribed(context, ACKING)
    for number, key in enumerate(ALIKE):
        context.broker.publish(b"m%d" % number, key=key)
        await context.sleep(0.2)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", server=QUICK)
async def unsubscribed(context: ScriptContext) -> None:
    """A consumer that ends with messages in its hands; another one gets them."""
    put(context, "m0", "m1", "m2")
    await context.connect()
    await subscribed(context, {**EVENTS, "sleep_ms": 400})
    await context.sleep(0.6)
    await context.op("unsubscribe", sub="c1")
    put(context, "m3")
    await context.sleep(0.5)
    await subscribed(context, ACKING, "c2")
    await context.sleep(3)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", server=QUICK, injections=False)
async def replaced(context: ScriptContext) -> None:
    """Consumers that end, and are replaced, while messages wait for a slow callback."""
    await context.connect()
    for number in range(3):
        await subscribed(context, {**ACKING, "sleep_ms": 1500}, f"c{number}")
        put(context, *[f"{number}{i}" for i in range(4)])
        await context.sleep(0.5)
        await context.op("unsubscribe", 5.0, sub=f"c{number}")
        await context.sleep(number)
    await subscribed(context, ACKING, "c3")
    await context.sleep(3)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def one_is_slow(context: ScriptContext) -> None:
    """Two consumers, one of whose callbacks takes its time; the messages of the other one come meanwhile."""
    await context.connect()
    await subscribed(context, {**ACKING, "sleep_ms": 3000}, "slow")
    put(context, "long")
    await context.sleep(0.5)
    await subscribed(context, ACKING, "quick")
    for number in range(4):
        put(context, f"m{number}")
        await context.sleep(0.2)
    await context.sleep(15)
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["endpoints"], injections=False)
async def two_instances(context: ScriptContext) -> None:
    """A consumer at two instances, each of which delivers while a callback runs for the other one."""
    with second_server(context) as other:
        here = context.endpoint["send"]
        await context.connect(endpoints={**context.endpoint, "send": [here, other.send_url]})
        await subscribed(context, {**ACKING, "sleep_ms": 1000})
        await context.sleep(1)
        for number in range(2):
            put(context, f"one {number}")
            await context.sleep(0.5)
            other.publish(f"two {number}".encode())
            await context.sleep(0.7)
        await context.sleep(8)
        await context.finale("publish", **PROBE)


@base(role="consumer", needs=["auto_reconnect", "endpoints"], injections=False)
async def instances_in_turn(context: ScriptContext) -> None:
    """Two instances are away by turns, and their messages come again when they are back."""
    with second_server(context) as other:
        here = context.endpoint["send"]
        await context.connect(endpoints={**context.endpoint, "send": [here, other.send_url]})
        await subscribed(context, ACKING)
        async for turn in in_turns(context, other, 4):
            put(context, f"one {turn}")
            other.publish(f"two {turn}".encode())
        other.restart()
        await watched(context, "last")
        await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def settled_last(context: ScriptContext) -> None:
    """Messages are acknowledged, and given back, right before the session is closed."""
    put(context, "m0", "m1", "m2", "m3")
    await context.connect()
    await subscribed(context, EVENTS)
    await context.sleep(1)
    refs = [event["ref"] for event in context.adapter.events if event.event == "message"]
    for number, ref in enumerate(refs):
        await context.op("settle", sub="c1", ref=ref, how="nack" if number == 1 else "ack")
    await context.sleep(0.01)
    await context.close()
