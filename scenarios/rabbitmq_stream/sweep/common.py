"""Base scripts that other protocols have, too; see `conformance.run.common_bases`."""

from __future__ import annotations

from conformance.run.bases import ScriptContext
from conformance.run.common_bases import ends_at_once, overtaken
from scenarios.rabbitmq_stream.sweep._shared import EVENTS, PROBE, PUBLISH

NAMED = {**PUBLISH, "name": "p"}


async def consuming(context: ScriptContext) -> None:
    """A session with a subscription."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "next"}, "credit": 2}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)


async def publishing(context: ScriptContext) -> None:
    """A session for a stream."""
    context.broker.create_stream("S")
    await context.connect()


COMMON = [
    ends_at_once(consuming, "publish", **PROBE),
    overtaken(publishing, needs=["named_publisher"], publish=NAMED),
    overtaken(
        publishing,
        needs=["named_publisher", "subentry"],
        packed="gzip",
        name="overtaken-batches",
        publish=NAMED,
    ),
]
