"""Base scripts that other protocols have, too; see `conformance.run.common_bases`."""

from __future__ import annotations

from conformance.run.bases import ScriptContext
from conformance.run.common_bases import ends_at_once
from scenarios.moleculer.sweep._shared import PROBE, joined, peer


async def calling(context: ScriptContext) -> None:
    """A node that knows another one."""
    peer(context)
    await joined(context)


COMMON = [ends_at_once(calling, "mol.call", role="caller", **PROBE)]
