"""Base scripts that other protocols have, too; see `conformance.run.common_bases`."""

from __future__ import annotations

from conformance.run.bases import ScriptContext
from conformance.run.common_bases import ends_at_once, overtaken
from scenarios.narconi.sweep._shared import EVENTS, PROBE, PUBLISH, queues


async def consuming(context: ScriptContext) -> None:
    """A session with a subscription."""
    queues(context, "P", "C")
    await context.connect(auto_reconnect=True)
    await context.op("subscribe", sub="c1", target="C", options={"ack": True}, on_message=EVENTS)


async def publishing(context: ScriptContext) -> None:
    """A session for a queue."""
    queues(context)
    await context.connect(auto_reconnect=True)


COMMON = [ends_at_once(consuming, "publish", **PROBE), overtaken(publishing, publish=PUBLISH)]
