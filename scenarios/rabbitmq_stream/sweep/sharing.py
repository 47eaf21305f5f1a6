"""Base scripts in which several users share one thing: a stream, a window, an id, a session."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import delay, latency
from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.codes import Compression
from fakebrokers.rabbitmq_stream.entries import simple_entries
from scenarios.rabbitmq_stream.sweep._shared import (
    ASK,
    EVENTS,
    PROBE,
    PUBLISH,
    put,
    put_entries,
    record,
    watched,
)

NEXT = {"offset": {"type": "next"}, "credit": 3}


@base(role="consumer", injections=False)
async def together(context: ScriptContext) -> None:
    """Several consumers and publishers of one stream, which gets another leader again and again."""
    context.broker.create_stream("S")
    await context.connect()
    names = (None, "p", "q")
    for number in range(3):
        await context.op("subscribe", sub=f"c{number}", target="S", options=NEXT, on_message=EVENTS)
    for number in range(3):
        calls = [
            context.begin("publish", 8.0, body=text(f"a{number}{name}"), target="S", name=name, wait=True)
            for name in names
        ]
        await context.ended(calls)
        context.broker.restart_stream("S")
        await context.sleep(10)
        put(context, f"m{number}")
        await context.sleep(2)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def begun_inside(context: ScriptContext) -> None:
    """Subscriptions that begin at each message of chunks with batches."""
    context.broker.create_stream("S")
    inner = [record(context, f"m{i}") for i in range(1, 5)]
    put_entries(context, batch_entry(inner, Compression.GZIP), 1, 4)
    more = [record(context, f"m{i}") for i in range(6, 8)]
    mixed = simple_entries([record(context, "m5")]) + batch_entry(more, Compression.NONE)
    put_entries(context, mixed + simple_entries([record(context, "m8")]), 3, 4)
    await context.connect()
    for offset in range(9):
        options = {"offset": {"type": "offset", "value": offset}, "credit": 2}
        await context.op("subscribe", sub=f"c{offset}", target="S", options=options, on_message=EVENTS)
        await context.sleep(1)
        await context.op("unsubscribe", sub=f"c{offset}")
    await context.finale("rmqs.query_sequence", **ASK)


SUPERS = {"orders": ("orders-0", "orders-1", "orders-2"), "bills": ("bills-0", "bills-1", "bills-2")}


@base(role="publisher", injections=False, needs=["super_streams"])
async def two_super_streams(context: ScriptContext) -> None:
    """Messages of the same keys for two super streams, by their hash and by the key itself, in turns."""
    context.broker.create_stream("S")
    for name, partitions in SUPERS.items():
        context.broker.create_super_stream(name, partitions, ["a", "b", "c"])
    await context.connect()
    for number, by in enumerate(("hash", "key", "hash")):
        for key in ("a", "b", "c"):
            for name in SUPERS:
                routing = {"by": by, "key": key}
                body = text(f"{name}{key}{number}")
                await context.op("publish", target=name, body=body, routing=routing, wait=True)
        context.kill()
        await context.sleep(5)
    await context.finale("publish", **PROBE)


LARGE, MANY, FEW = 1_000_000, 17, 40  #: of a message, bytes; how many fill a window; how many wait for room


@base(role="publisher", injections=False, needs=["cancel"])
async def crowded_window(context: ScriptContext) -> None:
    """Many messages wait for room behind large ones without confirms, and most of them are cancelled."""
    context.broker.create_stream("S")
    await context.connect()
    await context.op("publish", body=text("first"), **PUBLISH)
    context.broker.faults.add(latency(2.0, role="confirm", direction="out"))
    for number in range(MANY):
        body = {"gen": "zero", "len": LARGE + number}
        context.begin("publish", 20.0, body=body, **PUBLISH)
    await context.sleep(1)
    waiting = [context.begin("publish", 20.0, body=text(f"w{i}"), **PUBLISH) for i in range(FEW)]
    await context.sleep(0.1)
    for call in waiting[: 3 * FEW // 4]:
        await context.adapter.cancel(call)
    await context.ended(waiting)
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def stored_last(context: ScriptContext) -> None:
    """Offsets that are stored right before the client is closed."""
    context.broker.create_stream("S")
    put(context, "m0", "m1", "m2")
    await context.connect()
    await context.op("rmqs.query_sequence", **ASK)
    for name in ("app", "other"):
        for offset in range(3):
            await context.op("rmqs.store_offset", target="S", name=name, offset=offset)
    await context.close()


@base(role="publisher", injections=False)
async def late_confirm(context: ScriptContext) -> None:
    """The confirm of a publisher that was deleted comes while a new one waits for its own, which is lost."""
    for name in ("S", "S2"):
        context.broker.create_stream(name)
    await context.connect()
    context.broker.faults.add(delay(1.0, kind="PublishConfirm", nth=1))
    context.broker.faults.add(delay(3.0, kind="Publish", direction="in", nth=2))
    await context.op("publish", body=text("old"), target="S", wait=False)
    await context.sleep(0.1)
    await context.op("rmqs.delete_publisher", target="S", name=None)
    new = context.begin("publish", 8.0, body=text("new"), target="S2", wait=True)
    await context.sleep(2)
    context.kill()
    await new
    await context.sleep(5)
    await context.finale("publish", **PROBE)
