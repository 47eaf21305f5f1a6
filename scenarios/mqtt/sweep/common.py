"""Base scripts that other protocols have, too; see `conformance.run.common_bases`."""

from __future__ import annotations

from conformance.run.bases import ScriptContext
from conformance.run.common_bases import ends_at_once, overtaken
from scenarios.mqtt.sweep._shared import LASTING, PROBE, PUBLISH, subscribed

RETAINED = {**PUBLISH, "retain": True}


async def consuming(context: ScriptContext) -> None:
    """A session with a subscription."""
    await context.connect()
    await subscribed(context)


async def publishing(context: ScriptContext) -> None:
    """A session that lasts: what has no answer is sent again (4.4)."""
    await context.connect(**LASTING)


COMMON = [
    ends_at_once(consuming, "publish", **PROBE),
    overtaken(publishing, needs=["lasting"], publish=RETAINED),
]
