"""Base scripts that other protocols have, too; see `conformance.run.common_bases`."""

from __future__ import annotations

from conformance.run.bases import ScriptContext
from conformance.run.common_bases import ends_at_once
from scenarios.rabbitmq_stream.sweep._shared import EVENTS, PROBE


async def consuming(context: ScriptContext) -> None:
    """A session with a subscription."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "next"}, "credit": 2}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)


COMMON = [ends_at_once(consuming, "publish", **PROBE)]
