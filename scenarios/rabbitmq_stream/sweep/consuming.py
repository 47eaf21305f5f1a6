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
async def consume(stage: ScriptContext) -> None:
    """Consumes chunks of several messages and a batch, with a slow callback and little credit."""
    stage.broker.create_stream("S")
    put(stage, "m0", "m1", "m2", "m3")
    put(stage, "m4", "m5", "m6")
    inner = [record(stage, f"m{i}") for i in range(7, 10)]
    packed = batch_entry(inner, Compression.GZIP) + simple_entries([record(stage, "m10")])
    put_entries(stage, packed, 2, 4)
    await stage.connect()
    options = {"offset": {"type": "first"}, "credit": 2, "name": "app", "properties": {"x": "y"}}
    slow = {"mode": "event", "sleep_ms": 50}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=slow)
    await stage.sleep(0.3)
    put(stage, "m11", "m12")
    await stage.sleep(1.2)
    await stage.op("rmqs.store_offset", target="S", name="app", offset=5)
    await stage.op("rmqs.query_offset", target="S", name="app")
    put(stage, "m13", "m14", "m15")
    await stage.sleep(3)
    await watched(stage, "m16")
    await stage.op("unsubscribe", sub="c1")
    later = {"offset": {"type": "offset", "value": 5}, "credit": 10}
    await stage.op("subscribe", sub="c2", target="S", options=later, on_message=EVENTS)
    await stage.sleep(1)
    await stage.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", bends=False)
async def foreign_batches(stage: ScriptContext) -> None:
    """Batches in unknown compressions, between messages that every client can read."""
    stage.broker.create_stream("S")
    await stage.connect()
    options = {"offset": {"type": "first"}, "credit": 3}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    for number, code in enumerate(UNKNOWN_COMPRESSIONS):
        batch = bytearray(batch_entry([record(stage, f"b{number}{i}") for i in range(2)], Compression.NONE))
        batch[0] |= code << 4
        put_entries(stage, bytes(batch), 1, 2)
        put(stage, f"m{number}")
        await stage.sleep(0.2)
    await watched(stage, "last")
    await stage.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", bends=False)
async def large_chunks(stage: ScriptContext) -> None:
    """Chunks above the frame maximum, which binds the client only (document, Deliver)."""
    stage.broker.create_stream("S")
    await stage.connect(frame_max=4096)
    options = {"offset": {"type": "first"}, "credit": 3}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    for number, count in enumerate((3, 5, 40)):
        put(stage, *[f"{number}-{i}-".ljust(1000, "x") for i in range(count)])
        await stage.sleep(0.2)
    await watched(stage, "last")
    await stage.finale("rmqs.query_sequence", **ASK)


@base(role="consumer")
async def positions(stage: ScriptContext) -> None:
    """Every way to say where to begin; subscriptions that end before a message came."""
    stage.broker.create_stream("S")
    put(stage, *[f"m{i}" for i in range(4)])
    await stage.connect()
    starts = (
        {"type": "timestamp", "value": FAR_MS}, {"type": "next"}, {"type": "last"},
        {"type": "offset", "value": 2}, {"type": "timestamp", "value": 1}, {"type": "first"},
        {"type": "offset", "value": 2**53 + 1}, {"type": "offset", "value": 2**63 + 1},
    )  # fmt: skip
    for number, start in enumerate(starts):
        options = {"offset": start, "credit": 2, "name": f"n{number}"}
        await stage.op("subscribe", sub=f"c{number}", target="S", options=options, on_message=EVENTS)
        await stage.sleep(0.2)
        await stage.op("unsubscribe", sub=f"c{number}", drain=bool(number % 2))
    options = {"offset": {"type": "timestamp", "value": FAR_MS}, "credit": 2, "name": "n9"}
    await stage.op("subscribe", sub="c9", target="S", options=options, on_message=EVENTS)
    await stage.finale("rmqs.query_sequence", **ASK)


@base(role="consumer")
async def several(stage: ScriptContext) -> None:
    """Subscriptions of several streams on one session, one of which is ended and begun again."""
    for name in ("S", "S2", "S3"):
        stage.broker.create_stream(name)
        stage.broker.publish(name, [record(stage, f"{name}{i}") for i in range(3)])
    await stage.connect()
    for number, name in enumerate(("S", "S2", "S3")):
        options = {"offset": {"type": "first"}, "credit": 1 + number}
        await stage.op("subscribe", sub=name, target=name, options=options, on_message=EVENTS)
    await stage.sleep(0.3)
    await stage.op("unsubscribe", sub="S2")
    stage.broker.publish("S2", [record(stage, "unseen")])
    put(stage, "s3", "s4")
    await stage.sleep(0.5)
    await watched(stage, "s5")
    await stage.finale("rmqs.query_sequence", **ASK)


@base(role="consumer")
async def slow(stage: ScriptContext) -> None:
    """A slow callback, more chunks than credit, and messages that come all the time."""
    stage.broker.create_stream("S")
    await stage.connect()
    options = {"offset": {"type": "next"}, "credit": 3}
    lazy = {"mode": "event", "sleep_ms": 100}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=lazy)
    put_entries(stage, batch_entry([record(stage, "y0"), record(stage, "y1")], Compression.NONE), 1, 2)
    for number in range(12):
        put(stage, f"a{number}", f"b{number}")
        await stage.sleep(0.11)
    await stage.sleep(2)
    await watched(stage, "last")
    await stage.op("unsubscribe", sub="c1", drain=True)
    await stage.finale("rmqs.query_sequence", **ASK)


@base(role="consumer")
async def single_active(stage: ScriptContext) -> None:
    """A single active consumer: the server asks from where to go on."""
    stage.broker.create_stream("S")
    put(stage, *[f"m{i}" for i in range(5)])
    await stage.connect()
    properties = {"single-active-consumer": "true"}
    options = {"offset": {"type": "first"}, "credit": 2, "name": "app", "properties": properties}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    await stage.sleep(0.3)
    put(stage, "m5", "m6")
    await stage.sleep(0.5)
    await watched(stage, "m7")
    await stage.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", bends=False)
async def handed_over(stage: ScriptContext) -> None:
    """A partition that goes to another consumer and comes back while a callback of the first one is busy."""
    stage.notes.sessions = 2
    stage.broker.call(_partitions, stage.broker.broker)
    stage.broker.publish("P-1", [record(stage, f"m{i}") for i in range(3)])
    await stage.connect()
    await stage.connect("s2")
    properties = {"single-active-consumer": "true", "super-stream": "P"}
    options = {"offset": {"type": "first"}, "credit": 2, "name": "app", "properties": properties}
    busy = {"mode": "event", "sleep_ms": 3000}
    await stage.op("subscribe", sub="c1", target="P-1", options=options, on_message=busy)
    await stage.sleep(0.5)
    await stage.op("subscribe", session="s2", sub="c2", target="P-1", options=options, on_message=EVENTS)
    await stage.sleep(5)
    await stage.op("unsubscribe", sub="c2")
    await stage.sleep(15)
    await stage.op("close", session="s2")
    await stage.finale("rmqs.query_sequence", target="P-1", name="nobody")


def _partitions(broker: StreamBroker) -> None:
    """A super stream of two partitions, of which the second consumer reads the second one."""
    broker.create_super_stream("/", "P", ("P-0", "P-1"), ("0", "1"), {}, broker.cluster.nodes[0])


@base(role="consumer")
async def both(stage: ScriptContext) -> None:
    """Publishes and consumes on one session, whose connections the server resets once."""
    stage.broker.create_stream("S")
    put(stage, *[f"m{i}" for i in range(5)])
    await stage.connect()
    options = {"offset": {"type": "first"}, "credit": 3, "name": "app"}
    lazy = {"mode": "event", "sleep_ms": 30}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=lazy)
    named = {**PUBLISH, "name": "p"}
    calls = [stage.begin("publish", body=text(f"a{i}"), **named) for i in range(3)]
    await stage.sleep(0.06)
    stage.kill()
    calls += [stage.begin("publish", 8.0, body=text(f"k{i}"), **named) for i in range(2)]
    calls += [stage.begin("publish", 8.0, body=text(f"u{i}"), **PUBLISH) for i in range(2)]
    calls.append(stage.begin("rmqs.query_sequence", 8.0, target="S", name="p"))
    await stage.ended(calls)
    await stage.sleep(3)
    await watched(stage, "m16")
    await stage.finale("publish", **PROBE)


@base(role="consumer", server={"heartbeat_s": 2}, bends=False)
async def lazy(stage: ScriptContext) -> None:
    """Callbacks that take longer than several heartbeats."""
    stage.broker.create_stream("S")
    put(stage, "m0", "m1")
    await stage.connect()
    options = {"offset": {"type": "first"}, "credit": 2}
    sleepy = {"mode": "event", "sleep_ms": 7000}
    await stage.op("subscribe", sub="c1", target="S", options=options, on_message=sleepy)
    await stage.sleep(20)
    await stage.finale("rmqs.query_sequence", **ASK)
