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


def record(context: ScriptContext, body: str) -> bytes:
    """A message as this client's users store it."""
    formats = context.adapter.hello.formats
    return wrapped(body.encode()) if formats[:1] == ["amqp"] else body.encode()


def put(context: ScriptContext, *bodies: str) -> None:
    """Messages of another publisher, as one chunk."""
    context.broker.publish("S", [record(context, body) for body in bodies])


def put_entries(context: ScriptContext, entries: bytes, count: int, records: int) -> None:
    """A chunk with these entries."""
    batch = Batch(bytes(8 * count), entries, count, records)
    writer = context.broker.broker.stream("S").writer
    context.broker.call(lambda: writer.publish(batch, "", lambda *_: None, context.broker.engine.now))


async def watched(context: ScriptContext, body: str) -> None:
    """Clear the faults, wait until every back-off has ended, and see that messages still come."""
    context.calm()
    await context.sleep(LONG_S)
    put(context, body)
    await context.sleep(LOOK_S)
    context.mark("subscribed")
