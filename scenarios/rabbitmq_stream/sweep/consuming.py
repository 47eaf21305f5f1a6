"""Base scripts of applications that consume."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.broker import StreamBroker
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

UNKNOWN_COMPRESSIONS = (5, 6, 7)  #: three bits, of which 0 to 4 have a meaning
FAR_MS = 1_900_000_000_000  #: after all that is in the stream


@base(role="consumer")
async def consume(context: ScriptContext) -> None:
    """Consumes chunks of several messages and a batch, with a slow callback and little credit."""
    context.broker.create_stream("S")
    put(context, "m0", "m1", "m2", "m3")
    put(context, "m4", "m5", "m6")
    inner = [record(context, f"m{i}") for i in range(7, 10)]
    packed = batch_entry(inner, Compression.GZIP) + simple_entries([record(context, "m10")])
    put_entries(context, packed, 2, 4)
    await context.connect()
    options = {"offset": {"type": "first"}, "credit": 2, "name": "app", "properties": {"x": "y"}}
    slow = {"mode": "event", "sleep_ms": 50}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=slow)
    await context.sleep(0.3)
    put(context, "m11", "m12")
    await context.sleep(1.2)
    await context.op("rmqs.store_offset", target="S", name="app", offset=5)
    await context.op("rmqs.query_offset", target="S", name="app")
    put(context, "m13", "m14", "m15")
    await context.sleep(3)
    await watched(context, "m16")
    await context.op("unsubscribe", sub="c1")
    later = {"offset": {"type": "offset", "value": 5}, "credit": 10}
    await context.op("subscribe", sub="c2", target="S", options=later, on_message=EVENTS)
    await context.sleep(1)
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", injections=False)
async def foreign_batches(context: ScriptContext) -> None:
    """Batches in unknown compressions, between messages that every client can read."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "first"}, "credit": 3}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    for number, code in enumerate(UNKNOWN_COMPRESSIONS):
        batch = bytearray(batch_entry([record(context, f"b{number}{i}") for i in range(2)], Compression.NONE))
        batch[0] |= code << 4
        put_entries(context, bytes(batch), 1, 2)
        put(context, f"m{number}")
        await context.sleep(0.2)
    await watched(context, "last")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", injections=False)
async def large_chunks(context: ScriptContext) -> None:
    """Chunks above the frame maximum, which binds the client only (document, Deliver)."""
    context.broker.create_stream("S")
    await context.connect(frame_max=4096)
    options = {"offset": {"type": "first"}, "credit": 3}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    for number, count in enumerate((3, 5, 40)):
        put(context, *[f"{number}-{i}-".ljust(1000, "x") for i in range(count)])
        await context.sleep(0.2)
    await watched(context, "last")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer")
async def positions(context: ScriptContext) -> None:
    """Every way to say where to begin; subscriptions that end before a message came."""
    context.broker.create_stream("S")
    put(context, *[f"m{i}" for i in range(4)])
    await context.connect()
    starts = (
        {"type": "timestamp", "value": FAR_MS}, {"type": "next"}, {"type": "last"},
        {"type": "offset", "value": 2}, {"type": "timestamp", "value": 1}, {"type": "first"},
        {"type": "offset", "value": 2**53 + 1}, {"type": "offset", "value": 2**63 + 1},
    )  # fmt: skip
    for number, start in enumerate(starts):
        options = {"offset": start, "credit": 2, "name": f"n{number}"}
        await context.op("subscribe", sub=f"c{number}", target="S", options=options, on_message=EVENTS)
        await context.sleep(0.2)
        await context.op("unsubscribe", sub=f"c{number}", drain=bool(number % 2))
    options = {"offset": {"type": "timestamp", "value": FAR_MS}, "credit": 2, "name": "n9"}
    await context.op("subscribe", sub="c9", target="S", options=options, on_message=EVENTS)
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer")
async def several(context: ScriptContext) -> None:
    """Subscriptions of several streams on one session, one of which is ended and begun again."""
    for name in ("S", "S2", "S3"):
        context.broker.create_stream(name)
        context.broker.publish(name, [record(context, f"{name}{i}") for i in range(3)])
    await context.connect()
    for number, name in enumerate(("S", "S2", "S3")):
        options = {"offset": {"type": "first"}, "credit": 1 + number}
        await context.op("subscribe", sub=name, target=name, options=options, on_message=EVENTS)
    await context.sleep(0.3)
    await context.op("unsubscribe", sub="S2")
    context.broker.publish("S2", [record(context, "unseen")])
    put(context, "s3", "s4")
    await context.sleep(0.5)
    await watched(context, "s5")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", injections=False)
async def of_one_stream(context: ScriptContext) -> None:
    """Subscriptions of one stream on one session, from several places; then one of them ends."""
    context.broker.create_stream("S")
    put(context, *[f"m{i}" for i in range(4)])
    await context.connect()
    starts = ({"type": "first"}, {"type": "offset", "value": 2}, {"type": "next"})
    for number, start in enumerate(starts):
        options = {"offset": start, "credit": 10}
        await context.op("subscribe", sub=f"c{number}", target="S", options=options, on_message=EVENTS)
    await context.sleep(0.3)
    put(context, "s3", "s4")
    await context.sleep(1)
    await context.op("unsubscribe", sub="c1")
    await watched(context, "s5")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer")
async def deleted(context: ScriptContext) -> None:
    """Two streams are consumed, and somebody deletes one of them at the server."""
    for name in ("S", "S2"):
        context.broker.create_stream(name)
        context.broker.publish(name, [record(context, f"{name}{i}") for i in range(3)])
    await context.connect()
    for name in ("S", "S2"):
        options = {"offset": {"type": "first"}}
        await context.op("subscribe", sub=name, target=name, options=options, on_message=EVENTS)
    await context.sleep(0.3)
    context.broker.delete_stream("S2")
    await context.sleep(0.5)
    await watched(context, "s3")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer")
async def slow(context: ScriptContext) -> None:
    """A slow callback, more chunks than credit, and messages that come all the time."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "next"}, "credit": 3}
    lazy = {"mode": "event", "sleep_ms": 100}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=lazy)
    put_entries(context, batch_entry([record(context, "y0"), record(context, "y1")], Compression.NONE), 1, 2)
    for number in range(12):
        put(context, f"a{number}", f"b{number}")
        await context.sleep(0.11)
    await context.sleep(2)
    await watched(context, "last")
    await context.op("unsubscribe", sub="c1", drain=True)
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer")
async def single_active(context: ScriptContext) -> None:
    """A single active consumer: the server asks from where to go on."""
    context.broker.create_stream("S")
    put(context, *[f"m{i}" for i in range(5)])
    await context.connect()
    properties = {"single-active-consumer": "true"}
    options = {"offset": {"type": "first"}, "credit": 2, "name": "app", "properties": properties}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    await context.sleep(0.3)
    put(context, "m5", "m6")
    await context.sleep(0.5)
    await watched(context, "m7")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", injections=False)
async def handed_over(context: ScriptContext) -> None:
    """A partition that goes to another consumer and comes back while a callback of the first one is busy."""
    context.notes.sessions = 2
    context.broker.call(_partitions, context.broker.broker)
    context.broker.publish("P-1", [record(context, f"m{i}") for i in range(3)])
    await context.connect()
    await context.connect("s2")
    properties = {"single-active-consumer": "true", "super-stream": "P"}
    options = {"offset": {"type": "first"}, "credit": 2, "name": "app", "properties": properties}
    busy = {"mode": "event", "sleep_ms": 3000}
    await context.op("subscribe", sub="c1", target="P-1", options=options, on_message=busy)
    await context.sleep(0.5)
    await context.op("subscribe", session="s2", sub="c2", target="P-1", options=options, on_message=EVENTS)
    await context.sleep(5)
    await context.op("unsubscribe", sub="c2")
    await context.sleep(15)
    await context.op("close", session="s2")
    await context.finale("rmqs.query_sequence", target="P-1", name="nobody")


def _partitions(broker: StreamBroker) -> None:
    """A super stream of two partitions, of which the second consumer reads the second one."""
    broker.create_super_stream("/", "P", ("P-0", "P-1"), ("0", "1"), {}, broker.cluster.nodes[0])


@base(role="consumer")
async def both(context: ScriptContext) -> None:
    """Publishes and consumes on one session, whose connections the server resets once."""
    context.broker.create_stream("S")
    put(context, *[f"m{i}" for i in range(5)])
    await context.connect()
    options = {"offset": {"type": "first"}, "credit": 3, "name": "app"}
    lazy = {"mode": "event", "sleep_ms": 30}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=lazy)
    named = {**PUBLISH, "name": "p"}
    calls = [context.begin("publish", body=text(f"a{i}"), **named) for i in range(3)]
    await context.sleep(0.06)
    context.kill()
    calls += [context.begin("publish", 8.0, body=text(f"k{i}"), **named) for i in range(2)]
    calls += [context.begin("publish", 8.0, body=text(f"u{i}"), **PUBLISH) for i in range(2)]
    calls.append(context.begin("rmqs.query_sequence", 8.0, target="S", name="p"))
    await context.ended(calls)
    await context.sleep(3)
    await watched(context, "m16")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def replaced(context: ScriptContext) -> None:
    """Subscriptions that end, and are replaced, while messages wait for a slow callback."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "next"}, "credit": 3}
    lazy = {"mode": "event", "sleep_ms": 1500}
    await context.op("subscribe", sub="c0", target="S", options=options, on_message=lazy)
    for number in range(3):
        put(context, *[f"{number}{i}" for i in range(3)])
        put(context, f"{number}x")
        await context.sleep(0.5)
        await context.op("unsubscribe", 5.0, sub=f"c{number}")
        await context.sleep(number)
        sub = f"c{number + 1}"
        await context.op("subscribe", sub=sub, target="S", options=options, on_message=lazy)
    await watched(context, "last")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", server={"heartbeat_s": 2}, injections=False)
async def lazy(context: ScriptContext) -> None:
    """Callbacks that take longer than several heartbeats."""
    context.broker.create_stream("S")
    put(context, "m0", "m1")
    await context.connect()
    options = {"offset": {"type": "first"}, "credit": 2}
    sleepy = {"mode": "event", "sleep_ms": 7000}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=sleepy)
    await context.sleep(20)
    await context.finale("rmqs.query_sequence", **ASK)


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
