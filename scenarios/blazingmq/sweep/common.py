"""Base scripts that other protocols have, too; see `conformance.run.common_bases`."""

from __future__ import annotations

from conformance.run.bases import ScriptContext
from conformance.run.common_bases import ends_at_once, overtaken
from scenarios.blazingmq.sweep._shared import PROBE, PUBLISH, writer


async def writing(context: ScriptContext) -> None:
    """A session with a queue to write."""
    await context.connect()
    await writer(context)


COMMON = [ends_at_once(writing, "publish", **PROBE), overtaken(writing, publish=PUBLISH)]
