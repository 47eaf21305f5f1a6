"""The base scripts of NATS; see `conformance.run.bases`."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from conformance.run.common_bases import ends_at_once
from fakebrokers.faults import latency
from scenarios.nats.sweep._shared import (
    EVENTS,
    PROBE,
    answering,
    publish,
    put,
    request,
    subscribed,
    watched,
)
from scenarios.nats.sweep.combined import ENDINGS, consumed_with, one_raises, published_with

__all__ = ["ENDINGS", "consumed_with", "one_raises", "published_with"]


@base(role="publisher", handshake=True)
async def waited(context: ScriptContext) -> None:
    """Publishes that wait, one after the other and some at a time."""
    await context.connect()
    await publish(context, "a")
    calls = [context.begin("publish", target="jobs", wait=True, body=text(f"b{i}")) for i in range(3)]
    await context.ended(calls)
    await publish(context, "", target="other")
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["flush"])
async def unwaited(context: ScriptContext) -> None:
    """Publishes that wait for nothing, and a flush."""
    await context.connect()
    await publish(context, *[f"a{i}" for i in range(4)], wait=False)
    await context.op("flush")
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="consumer", handshake=True)
async def consume(context: ScriptContext) -> None:
    """Messages on a subject, on one with wildcards, and as a member of a queue group."""
    await context.connect()
    await subscribed(context, "orders.new")
    await subscribed(context, "stock.*.>", "c2", queue="workers")
    for number in range(3):
        put(context, "orders.new", f"m{number}")
        put(context, f"stock.{number}.a.b", f"s{number}")
    put(context, "stock.7", "not for it")
    await context.sleep(2)
    await watched(context, "orders.new", "stock.9.z")
    await context.finale("publish", **PROBE)


@base(role="requester")
async def asking(context: ScriptContext) -> None:
    """Requests: answered, to nobody, without an answer, and some at a time."""
    answering(context)
    await context.connect()
    await request(context, "a")
    await request(context, "b", "nowhere")
    await request(context, "c", "mute")
    calls = [context.begin("nats.request", target="echo", body=text(f"d{i}")) for i in range(4)]
    await context.ended(calls)
    await context.finale("nats.request", target="echo", body=text("probe"))


@base(role="consumer", needs=["max_messages"])
async def limited(context: ScriptContext) -> None:
    """A subscription that ends by itself after three messages, beside one that does not."""
    await context.connect()
    await subscribed(context, "orders", max=3)
    await subscribed(context, "stock", "c2")
    for number in range(5):
        put(context, "orders", f"m{number}")
        put(context, "stock", f"s{number}")
        await context.sleep(0.5)
    await context.op("unsubscribe", sub="c1")
    await watched(context, "stock")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def unsubscribed(context: ScriptContext) -> None:
    """Subscriptions that are ended, at once and by draining, and made again."""
    await context.connect()
    for turn in range(2):
        await subscribed(context, "orders", f"a{turn}", {"mode": "event", "sleep_ms": 50})
        await subscribed(context, "stock", f"b{turn}")
        for number in range(3):
            put(context, "orders", f"m{turn}{number}")
            put(context, "stock", f"s{turn}{number}")
        await context.sleep(0.5)
        await context.op("unsubscribe", sub=f"a{turn}", drain=True)
        await context.op("unsubscribe", sub=f"b{turn}")
        put(context, "orders", f"late{turn}")
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def both(context: ScriptContext) -> None:
    """One session publishes, listens to that itself, and asks."""
    answering(context)
    await context.connect()
    await subscribed(context, "jobs")
    for number in range(3):
        await publish(context, f"a{number}")
        await request(context, f"b{number}")
    await watched(context, "jobs")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["callback_raise", "reentrant"])
async def callbacks(context: ScriptContext) -> None:
    """Callbacks that fail, that take long, and that ask something."""
    answering(context)
    context.notes.raises = True
    await context.connect()
    await subscribed(context, "orders", "c1", {"mode": "event", "raise_on": [1, 3]})
    inner = {"op": "nats.request", "args": {"session": "s1", "target": "echo", "body": text("in")}}
    await subscribed(context, "stock", "c2", {"mode": "event", "do": [{**inner, "timeout_ms": 2000}]})
    for number in range(3):
        put(context, "orders", f"m{number}")
        put(context, "stock", f"s{number}")
    await context.sleep(3)
    await watched(context, "orders", "stock")
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["cancel"])
async def cancelled(context: ScriptContext) -> None:
    """Ops that are cancelled while they are open; the next ones get the answers that are theirs."""
    answering(context)
    await context.connect()
    for number in range(2):
        for op, target in (("publish", "jobs"), ("nats.request", "echo")):
            call = context.begin(op, target=target, body=text(f"a{number}{op}"))
            await context.adapter.cancel(call)
            await context.op(op, target=target, body=text(f"b{number}{op}"))
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def closing(context: ScriptContext) -> None:
    """A close with everything under way."""
    answering(context)
    await context.connect()
    await subscribed(context, "orders", "c1", {**EVENTS, "sleep_ms": 100})
    put(context, "orders", *[f"m{i}" for i in range(4)])
    for number in range(3):
        context.begin("publish", target="jobs", wait=True, body=text(f"a{number}"))
        context.begin("nats.request", target="mute", body=text(f"b{number}"))
    await context.close()
    await publish(context, "z")
    await request(context, "z")


@base(role="publisher", injections=False)
async def outage(context: ScriptContext) -> None:
    """The server is away for a while with ops open; then everything is there again."""
    answering(context)
    await context.connect()
    await subscribed(context, "orders")
    await publish(context, "a")
    calls = [
        context.begin("publish", 20.0, target="jobs", wait=True, body=text("b")),
        context.begin("nats.request", 20.0, target="mute", body=text("c")),
    ]
    await context.outage(3.0)
    await context.ended(calls)
    await watched(context, "orders")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False, server={"nodes": 2})
async def other_node(context: ScriptContext) -> None:
    """A cluster of two: the node of the client is in lame duck mode and stops; the other one is there."""
    context.notes.partly_unreachable = True
    await context.connect()
    await subscribed(context, "orders")
    put(context, "orders", "m0")
    await context.sleep(1)
    context.killed.update(context.broker.engine.connections)
    context.broker.lame_duck(1)
    await context.sleep(15)
    await watched(context, "orders")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False, needs=["keepalive"])
async def quiet(context: ScriptContext) -> None:
    """A session that asks often whether the server is there, and has nothing else to do for a while."""
    await context.connect(ping_interval_s=1.0, max_pings=2)
    await subscribed(context, "orders")
    await publish(context, "a")
    context.broker.faults.add(latency(0.4, direction="out"))
    await context.sleep(20)
    await watched(context, "orders")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def rounds(context: ScriptContext) -> None:
    """Losses again and again: the client holds no more after the last one than after the first."""
    answering(context)
    await context.connect()
    await subscribed(context, "orders")
    context.mark("rounds")
    for number in range(6):
        context.kill("rst")
        await context.sleep(6)
        put(context, "orders", f"m{number}")
        await publish(context, f"a{number}")
        await request(context, f"b{number}")
        await context.op("stats")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def at_rest(context: ScriptContext) -> None:
    """The same ops again and again: what the client holds after them must not grow."""
    answering(context)
    await context.connect()
    context.mark("rounds")
    for number in range(6):
        await publish(context, f"a{number}")
        await request(context, f"b{number}")
        await subscribed(context, "orders", f"c{number}")
        put(context, "orders", f"m{number}")
        await context.sleep(0.5)
        await context.op("unsubscribe", sub=f"c{number}")
        await context.sleep(2)
        await context.op("stats")
    await context.finale("publish", **PROBE)


async def listening(context: ScriptContext) -> None:
    """A session with a subscription."""
    await context.connect()
    await subscribed(context, "jobs")


COMMON = [ends_at_once(listening, "publish", **PROBE)]
