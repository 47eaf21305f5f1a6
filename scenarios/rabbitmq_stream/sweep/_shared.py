"""What the base scripts of RabbitMQ Stream share."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, text
from fakebrokers.rabbitmq_stream.writer import Batch
from scenarios.rabbitmq_stream.sweep.records import wrapped

PUBLISH: dict[str, Any] = {"target": "S", "wait": True}
PROBE: dict[str, Any] = {**PUBLISH, "body": text("probe")}
ASK: dict[str, Any] = {"target": "S", "name": "nobody"}
EVENTS = {"mode": "event"}
LONG_S = 700.0  #: in which every back-off ends
LOOK_S = 30.0


def record(stage: ScriptContext, body: str) -> bytes:
    """A message as this client's users store it."""
    formats = stage.adapter.hello.formats
    return wrapped(body.encode()) if formats[:1] == ["amqp"] else body.encode()


def put(stage: ScriptContext, *bodies: str) -> None:
    """Messages of another publisher, as one chunk."""
    stage.broker.publish("S", [record(stage, body) for body in bodies])


def put_entries(stage: ScriptContext, entries: bytes, count: int, records: int) -> None:
    """A chunk with these entries."""
    batch = Batch(bytes(8 * count), entries, count, records)
    writer = stage.broker.broker.stream("S").writer
    stage.broker.call(lambda: writer.publish(batch, "", lambda *_: None, stage.broker.engine.now))


async def watched(stage: ScriptContext, body: str) -> None:
    """Clear the faults, wait until every back-off has ended, and see that messages still come."""
    stage.calm()
    await stage.sleep(LONG_S)
    put(stage, body)
    await stage.sleep(LOOK_S)
    stage.mark("subscribed")
