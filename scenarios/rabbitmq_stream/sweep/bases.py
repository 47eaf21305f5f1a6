"""What applications do with a client of RabbitMQ Stream, for the sweep to disturb."""

from __future__ import annotations

from typing import Any

from conformance.sweep.bases import Stage, base, text
from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.codes import Compression
from fakebrokers.rabbitmq_stream.entries import simple_entries
from fakebrokers.rabbitmq_stream.writer import Batch

PUBLISH: dict[str, Any] = {"target": "S", "wait": True}
PROBE: dict[str, Any] = {**PUBLISH, "body": text("probe")}
ASK: dict[str, Any] = {"target": "S", "name": "nobody"}
EVENTS = {"mode": "event"}
LONG_S = 200.0  #: in which every back-off ends
LOOK_S = 30.0


def put(stage: Stage, *bodies: str) -> None:
    """Messages of somebody else, as one chunk."""
    stage.broker.publish("S", [body.encode() for body in bodies])


def put_entries(stage: Stage, entries: bytes, count: int, records: int) -> None:
    """A chunk with these entries."""
    batch = Batch(bytes(8 * count), entries, count, records)
    writer = stage.broker.broker.stream("S").writer
    stage.broker.call(lambda: writer.publish(batch, "", lambda *_: None, stage.broker.engine.now))


async def publishing(stage: Stage, name: str | None) -> None:
    """Waited for and not, singly and many, then the publisher is deleted and made anew."""
    stage.broker.create_stream("S")
    await stage.connect()
    to: dict[str, Any] = {"target": "S", "name": name}
    calls = [stage.begin("publish", body=text(f"a{i}"), wait=True, **to) for i in range(3)]
    await stage.sleep(0.05)
    for word, wait in (("b", False), ("c", True)):
        many = [{"body": text(f"{word}{i}")} for i in range(3)]
        calls.append(stage.begin("publish_many", messages=many, wait=wait, **to))
        await stage.sleep(0.05)
    await stage.ended(calls)
    await stage.op("publish", body=text("d"), wait=True, **to)
    await stage.op("flush")
    if name:
        await stage.op("rmqs.query_sequence", **to)
    await stage.op("rmqs.delete_publisher", **to)
    await stage.op("publish", body=text("e"), wait=True, **to)
    await stage.finale("publish", **{**PROBE, "name": name})


@base(role="publisher")
async def publish(stage: Stage) -> None:
    """Publishes without a name: what has no confirm is not repeated."""
    await publishing(stage, None)


@base(role="publisher")
async def publish_named(stage: Stage) -> None:
    """Publishes under a name: what has no confirm is repeated behind a loss."""
    await publishing(stage, "p")


async def watched(stage: Stage, body: str) -> None:
    """Clear the faults, wait until every back-off has ended, and see that messages still come."""
    stage.calm()
    await stage.sleep(LONG_S)
    put(stage, body)
    await stage.sleep(LOOK_S)
    stage.mark("subscribed")


@base(role="consumer")
async def consume(stage: Stage) -> None:
    """Consumes chunks of several messages and a batch, with a slow callback and little credit."""
    stage.broker.create_stream("S")
    put(stage, "m0", "m1", "m2", "m3")
    put(stage, "m4", "m5", "m6")
    packed = batch_entry([b"m7", b"m8", b"m9"], Compression.GZIP) + simple_entries([b"m10"])
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


@base()
async def ask(stage: Stage) -> None:
    """Many questions at a time, some of which are refused."""
    stage.broker.create_stream("S")
    stage.broker.create_stream("D")
    stage.broker.store_offset("S", "r", 7)
    stage.broker.store_sequence("S", "q", 9)
    await stage.connect()
    for number in range(2):
        await stage.ended(
            [
                stage.begin("rmqs.create", target=f"N{number}"),
                stage.begin("rmqs.query_offset", target="S", name="r"),
                stage.begin("rmqs.metadata", targets=["S"]),
                stage.begin("rmqs.query_sequence", target="S", name="q"),
                stage.begin("rmqs.delete", target=f"X{number}"),
                stage.begin("rmqs.query_offset", target="S", name="none"),
            ]
        )
    await stage.op("rmqs.delete", target="D")
    await stage.op("rmqs.create", target="D")
    await stage.finale("rmqs.query_sequence", **ASK)
