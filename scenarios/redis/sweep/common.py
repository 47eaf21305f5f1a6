"""Base scripts that other protocols have, too; see `conformance.run.common_bases`."""

from __future__ import annotations

from conformance.run.bases import ScriptContext
from conformance.run.common_bases import ends_at_once
from scenarios.redis.sweep._shared import PROBE, subscribed


async def consuming(context: ScriptContext) -> None:
    """A session with a subscription."""
    await context.connect(auto_reconnect=True)
    await subscribed(context)


COMMON = [ends_at_once(consuming, "publish", **PROBE)]
