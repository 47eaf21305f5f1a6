"""Base scripts of applications that consume."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.properties import Property, PropertyType
from scenarios.blazingmq.sweep._shared import (
    EVENTS,
    FANOUT,
    PRIORITY,
    RARELY,
    SETTLED,
    R,
    finale,
    put,
    reader,
    settle,
    shut,
    subscribed,
    watched,
    writer,
)
from scenarios.blazingmq.sweep._shared import PROPERTIES as WRITTEN

PROPERTIES = {
    "i": Property(PropertyType.INT32, -5),
    "l": Property(PropertyType.INT64, 2**53 + 1),
    "s": Property(PropertyType.STRING, "äöü"),
    "x": Property(PropertyType.BINARY, b"\0\1"),
}


@base(role="consumer", server=RARELY)
async def consume(stage: ScriptContext) -> None:
    """Consumes events of several messages, with a slow callback, and confirms each."""
    put(stage, "m0", "m1", "m2", "m3")
    stage.broker.publish(R, b"m4", PROPERTIES)
    stage.broker.publish(R, b"m5" * 900, PROPERTIES, compression=Compression.ZLIB)
    await stage.connect()
    await writer(stage)
    await reader(stage, "c1", R, {"mode": "event", "sleep_ms": 50}, max_unconfirmed_messages=5)
    await stage.sleep(0.6)
    done: set[str] = set()
    await settle(stage, "c1", done)
    put(stage, "m6", "m7")
    await stage.sleep(1)
    await settle(stage, "c1", done)
    await stage.op("bmq.configure_queue", target=R, options={"max_unconfirmed_messages": 50})
    put(stage, "m8", "m9")
    await stage.sleep(3)
    await watched(stage, "m10")
    await settle(stage, "c1", done)
    await shut(stage)
    await finale(stage)


@base(role="consumer", server=RARELY)
async def read_first(stage: ScriptContext) -> None:
    """The first queue that is opened is one to read, and the only one for a while."""
    put(stage, "m0", "m1")
    await stage.connect()
    await reader(stage, "c1", R, SETTLED, max_unconfirmed_messages=6)
    put(stage, "m2", "m3")
    await stage.sleep(0.5)
    await writer(stage)
    put(stage, "m4")
    await watched(stage, "m5")
    await finale(stage)


@base(role="consumer", server=RARELY)
async def several(stage: ScriptContext) -> None:
    """Several queues and two apps of one, of which one is closed and opened again."""
    other = PRIORITY + "other"
    apps = [FANOUT + "news?id=foo", FANOUT + "news?id=bar"]
    await stage.connect()
    for number, uri in enumerate((R, other, *apps)):
        await reader(stage, f"c{number}", uri, SETTLED, max_unconfirmed_messages=10 + number)
    await writer(stage)
    put(stage, "r0", "r1")
    put(stage, "o0", "o1", uri=other)
    put(stage, "n0", "n1", "n2", uri=FANOUT + "news")
    await stage.sleep(0.5)
    await stage.op("unsubscribe", sub="c1")
    await shut(stage, other)
    put(stage, "r2", "r3")
    put(stage, "n3", uri=FANOUT + "news")
    await stage.sleep(0.5)
    await watched(stage, "r4")
    await finale(stage)


@base(role="consumer", server=RARELY)
async def late_callback(stage: ScriptContext) -> None:
    """Messages that come before there is a callback, and a burst of them after it."""
    put(stage, "m0", "m1", "m2")
    await stage.connect()
    await writer(stage)
    await stage.op("bmq.open_queue", 5.0, target=R, uri=R, flags=["read"])
    await stage.sleep(0.5)
    await subscribed(stage, "c1", R, SETTLED)
    for number in range(30):
        put(stage, f"b{number}")
    await stage.sleep(0.5)
    stage.broker.redeliver(R)
    await stage.sleep(0.5)
    await watched(stage, "last")
    await finale(stage)


@base(role="consumer", server={**RARELY, "profile": "plain"}, handshake=True)
async def older(stage: ScriptContext) -> None:
    """A broker that knows neither subscriptions nor the new style of properties."""
    put(stage, "m0", "m1")
    stage.broker.publish(R, b"m2", PROPERTIES)
    await stage.connect()
    await writer(stage)
    await reader(stage, "c1", R, EVENTS, max_unconfirmed_messages=7)
    await reader(stage, "c2", FANOUT + "news?id=foo", SETTLED, max_unconfirmed_messages=8)
    both = PRIORITY + "both"
    await stage.op("bmq.open_queue", target=both, uri=both, flags=["read", "write"])
    await subscribed(stage, "c3", both, SETTLED)
    given: dict[str, Any] = {"target": both, "wait": True, "properties": WRITTEN}
    await stage.op("publish", body=text("plain"), **given)
    await stage.op("publish", body={"gen": "zero", "len": 3000}, compression="zlib", **given)
    put(stage, "n0", "n1", uri=FANOUT + "news")
    await stage.sleep(0.5)
    await watched(stage, "m3")
    await shut(stage)
    await finale(stage)
