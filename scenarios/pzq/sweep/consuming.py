"""Base scripts of consumers."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base
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

FLOOD = 2500  #: messages


@base(role="consumer")
async def consume(stage: ScriptContext) -> None:
    """Messages that are acknowledged as they come."""
    put(stage, *[f"m{i}" for i in range(4)])
    await stage.connect()
    await subscribed(stage, ACKING)
    await stage.sleep(3)
    put(stage, "late")
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer")
async def by_hand(stage: ScriptContext) -> None:
    """Messages of several parts that the application settles later, in another order, and some twice."""
    for parts in ((b"a", b"b"), (b"c", b"", b""), (b"", b"d"), (b"e",), (b"\xff\x00",)):
        stage.broker.publish(*parts)
    await stage.connect()
    await subscribed(stage, EVENTS)
    await stage.sleep(1)
    await settle_all(stage, "ack", backwards=True)
    await settle_all(stage, "ack")
    await watched(stage, "last")
    await settle_all(stage, "ack")
    await stage.finale("publish", **PROBE)


@base(role="consumer", server=QUICK)
async def given_back(stage: ScriptContext) -> None:
    """Messages that are given back at first, and acknowledged when they come again."""
    put(stage, "m0", "m1", "m2")
    await stage.connect()
    await subscribed(stage, EVENTS)
    await stage.sleep(0.3)
    await settle_all(stage, "nack")
    await stage.sleep(0.3)
    await settle_all(stage, "ack")
    await watched(stage, "last")
    await settle_all(stage, "ack")
    await stage.finale("publish", **PROBE)


@base(role="consumer", server=QUICK)
async def expiring(stage: ScriptContext) -> None:
    """Messages that expire and come again, before they are acknowledged; and once more after that."""
    put(stage, "m0", "m1")
    await stage.connect()
    await subscribed(stage, EVENTS)
    await stage.sleep(3.2)
    await settle_all(stage, "ack")
    await stage.sleep(1)
    keys = [message.key for message in stage.broker.messages()]
    put(stage, "m2")
    await stage.sleep(0.2)
    keys = [message.key for message in stage.broker.messages() if message.key not in keys]
    await settle_all(stage, "ack")
    await stage.sleep(0.5)
    for key in keys:
        if key not in [message.key for message in stage.broker.messages()]:
            stage.broker.publish(b"m2", key=key)
    await stage.sleep(2)
    await stage.finale("publish", **PROBE)


@base(role="consumer", server=QUICK)
async def slow(stage: ScriptContext) -> None:
    """Callbacks that take longer than the ack timeout."""
    put(stage, "m0", "m1", "m2")
    await stage.connect()
    await subscribed(stage, {**ACKING, "sleep_ms": 700})
    await stage.sleep(8)
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer", needs=["callback_raise"])
async def failing(stage: ScriptContext) -> None:
    """Callbacks that fail: the message is given back and comes again."""
    put(stage, "m0", "m1", "m2")
    await stage.connect()
    await subscribed(stage, {"mode": "event", "raise_on": [1, 3]})
    await stage.sleep(2)
    await settle_all(stage, "ack")
    await watched(stage, "last")
    await settle_all(stage, "ack")
    await stage.finale("publish", **PROBE)


@base(role="consumer", needs=["filter_expired"], server=QUICK)
async def filtered(stage: ScriptContext) -> None:
    """What has expired while it waited for a slow callback is dropped, and comes again."""
    put(stage, "m0", "m1", "m2")
    await stage.connect()
    await subscribed(stage, {**ACKING, "sleep_ms": 1500, "sleep_on": [1]}, filter_expired=True)
    await stage.sleep(6)
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer", needs=["filter_expired"], server=PATIENT)
async def in_time(stage: ScriptContext) -> None:
    """What waits for a callback for most of the ack timeout, and not for all of it, has not expired."""
    put(stage, "m0", "m1", "m2")
    await stage.connect()
    await subscribed(stage, {**ACKING, "sleep_ms": 1400, "sleep_on": [1]}, filter_expired=True)
    await stage.sleep(6)
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer", bends=False, costly=True)
async def flood(stage: ScriptContext) -> None:
    """Far more messages than a callback that takes its time has been through."""
    await stage.connect()
    await subscribed(stage, {**ACKING, "sleep_ms": 2000, "sleep_on": [1]})
    put(stage, *[f"m{number}" for number in range(FLOOD)])
    await stage.sleep(4)
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer", server=QUICK)
async def several(stage: ScriptContext) -> None:
    """Two consumers that share the messages."""
    await stage.connect()
    await subscribed(stage, ACKING)
    await subscribed(stage, ACKING, "c2")
    put(stage, *[f"m{i}" for i in range(6)])
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)


@base(role="consumer", server=QUICK)
async def unsubscribed(stage: ScriptContext) -> None:
    """A consumer that ends with messages in its hands; another one gets them."""
    put(stage, "m0", "m1", "m2")
    await stage.connect()
    await subscribed(stage, {**EVENTS, "sleep_ms": 400})
    await stage.sleep(0.6)
    await stage.op("unsubscribe", sub="c1")
    put(stage, "m3")
    await stage.sleep(0.5)
    await subscribed(stage, ACKING, "c2")
    await stage.sleep(3)
    await watched(stage, "last")
    await stage.finale("publish", **PROBE)
