"""Base scripts of applications that consume."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.blazingmq.codes import Category, Compression
from fakebrokers.blazingmq.message import Message
from fakebrokers.blazingmq.properties import Property, PropertyType
from fakebrokers.faults import reply
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
async def consume(context: ScriptContext) -> None:
    """Consumes events of several messages, with a slow callback, and confirms each."""
    put(context, "m0", "m1", "m2", "m3")
    context.broker.publish(R, b"m4", PROPERTIES)
    context.broker.publish(R, b"m5" * 900, PROPERTIES, compression=Compression.ZLIB)
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, {"mode": "event", "sleep_ms": 50}, max_unconfirmed_messages=5)
    await context.sleep(0.6)
    done: set[str] = set()
    await settle(context, "c1", done)
    put(context, "m6", "m7")
    await context.sleep(1)
    await settle(context, "c1", done)
    await context.op("bmq.configure_queue", target=R, options={"max_unconfirmed_messages": 50})
    put(context, "m8", "m9")
    await context.sleep(3)
    await watched(context, "m10")
    await settle(context, "c1", done)
    await shut(context)
    await finale(context)


@base(role="consumer", server=RARELY)
async def refused_again(context: ScriptContext) -> None:
    """After a loss the first of the queues is refused for good; those that were opened after it come back."""
    await context.connect()
    await reader(context, "c1", PRIORITY + "gone")
    await reader(context, "c2")
    await writer(context)
    put(context, "m0", uri=PRIORITY + "gone")
    put(context, "m1")
    await context.sleep(1)
    asked_again = {"handle_parameters.uri": PRIORITY + "gone"}
    context.broker.faults.add(reply(int(Category.E_REFUSED), kind="openQueue", where=asked_again))
    context.kill("rst")
    await context.sleep(10)
    await watched(context, "m2")
    await finale(context)


@base(role="consumer", server=RARELY)
async def read_first(context: ScriptContext) -> None:
    """The first queue that is opened is one to read, and the only one for a while."""
    put(context, "m0", "m1")
    await context.connect()
    await reader(context, "c1", R, SETTLED, max_unconfirmed_messages=6)
    put(context, "m2", "m3")
    await context.sleep(0.5)
    await writer(context)
    put(context, "m4")
    await watched(context, "m5")
    await finale(context)


@base(role="consumer", server=RARELY)
async def several(context: ScriptContext) -> None:
    """Several queues and two apps of one, of which one is closed and opened again."""
    other = PRIORITY + "other"
    apps = [FANOUT + "news?id=foo", FANOUT + "news?id=bar"]
    await context.connect()
    for number, uri in enumerate((R, other, *apps)):
        await reader(context, f"c{number}", uri, SETTLED, max_unconfirmed_messages=10 + number)
    await writer(context)
    put(context, "r0", "r1")
    put(context, "o0", "o1", uri=other)
    put(context, "n0", "n1", "n2", uri=FANOUT + "news")
    await context.sleep(0.5)
    await context.op("unsubscribe", sub="c1")
    await shut(context, other)
    put(context, "r2", "r3")
    put(context, "n3", uri=FANOUT + "news")
    await context.sleep(0.5)
    await watched(context, "r4")
    await finale(context)


@base(role="consumer", server=RARELY)
async def late_callback(context: ScriptContext) -> None:
    """Messages that come before there is a callback, and a burst of them after it."""
    put(context, "m0", "m1", "m2")
    await context.connect()
    await writer(context)
    await context.op("bmq.open_queue", 5.0, target=R, uri=R, flags=["read"])
    await context.sleep(0.5)
    await subscribed(context, "c1", R, SETTLED)
    for number in range(30):
        put(context, f"b{number}")
    await context.sleep(0.5)
    context.broker.redeliver(R)
    await context.sleep(0.5)
    await watched(context, "last")
    await finale(context)


@base(role="consumer", server={**RARELY, "profile": "plain"}, handshake=True)
async def older(context: ScriptContext) -> None:
    """A broker that knows neither subscriptions nor the new style of properties."""
    put(context, "m0", "m1")
    context.broker.publish(R, b"m2", PROPERTIES)
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, EVENTS, max_unconfirmed_messages=7)
    await reader(context, "c2", FANOUT + "news?id=foo", SETTLED, max_unconfirmed_messages=8)
    both = PRIORITY + "both"
    await context.op("bmq.open_queue", target=both, uri=both, flags=["read", "write"])
    await subscribed(context, "c3", both, SETTLED)
    given: dict[str, Any] = {"target": both, "wait": True, "properties": WRITTEN}
    await context.op("publish", body=text("plain"), **given)
    await context.op("publish", body={"gen": "zero", "len": 3000}, compression="zlib", **given)
    put(context, "n0", "n1", uri=FANOUT + "news")
    await context.sleep(0.5)
    await watched(context, "m3")
    await shut(context)
    await finale(context)


@base(role="consumer", server=RARELY, injections=False)
async def resubscribed(context: ScriptContext) -> None:
    """A queue stays open while its callback goes and another one comes, and messages come all the time."""
    await context.connect()
    await writer(context)
    await reader(context, "c0", R, SETTLED)
    for number in range(3):
        put(context, f"with{number}")
        await context.sleep(1)
        await context.op("unsubscribe", sub=f"c{number}")
        put(context, f"without{number}", f"again{number}")
        await context.sleep(1)
        await subscribed(context, f"c{number + 1}", R, SETTLED)
    await watched(context, "last")
    await finale(context)


@base(role="consumer", server=RARELY, injections=False)
async def replaced(context: ScriptContext) -> None:
    """Callbacks that go, and are replaced, while messages wait for them behind a slow one: the queue stays
    open at first, then it is closed and opened again."""
    lazy = {**EVENTS, "sleep_ms": 1500}
    await context.connect()
    await writer(context)
    await reader(context, "c0", R, lazy)
    for number in range(3):
        put(context, *[f"{number}{i}" for i in range(4)])
        await context.sleep(0.5)
        await context.op("unsubscribe", 5.0, sub=f"c{number}")
        await context.sleep(number)
        if number == 2:
            await shut(context)
            await reader(context, "c3", R, SETTLED)
        else:
            await subscribed(context, f"c{number + 1}", R, lazy)
    await watched(context, "last")
    await finale(context)


def put_unreadable(context: ScriptContext, uri: str) -> None:
    """A message of a publisher that packs otherwise than it says; no broker looks into it."""

    def act() -> None:
        broker, now = context.broker.broker, context.broker.engine.now
        message = Message(broker.guids.new(now), b"no zlib at all", False, 0, Compression.ZLIB, now)
        broker.make_queue(uri).post(message)

    context.broker.call(act)


@base(role="consumer", server=RARELY, injections=False)
async def partly_readable(context: ScriptContext) -> None:
    """Events of which one message cannot be read: the first, one in the middle, the last."""
    uris = [PRIORITY + f"r{number}" for number in range(3)]
    for number, uri in enumerate(uris):
        for place in range(3):
            if place == number:
                put_unreadable(context, uri)
            put(context, f"m{number}{place}", uri=uri)
    put_unreadable(context, uris[-1])
    await context.connect()
    for number, uri in enumerate(uris):
        await reader(context, f"c{number}", uri, EVENTS)
        await context.sleep(1)
    await writer(context)
    await watched(context, "last", uris[0])
    await finale(context)
