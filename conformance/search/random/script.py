"""Base scripts of the sweep under schedules of chaos: requests of all kinds, names, groups, limits.

A mixture asks the same few things again and again. A base script of the sweep does what few applications do,
in a handful of ops; here several faults and nemeses meet it at once. Its end is its own: it clears what
disturbs, sees that a question works again, and closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.run.material import material_of
from conformance.search.random.actions import Actions
from conformance.search.random.nemesis import GENERAL
from conformance.search.random.workload import Workload

#: Nemeses that need nothing of a workload but its connections; what a broker forgets, no script makes again.
NEMESES = tuple(one.name for one in GENERAL if not one.forgets and not one.needs_process)
OTHER_WIRE = "transporter"  #: an option of a fake; faults are drawn for frames of its first wire
SCRIPT_SECONDS = (0.2, 1.0, 4.0)  #: a script is over sooner than a mixture
SCRIPT_S = 60.0  #: a step may last as long as the script itself


class Script(Workload):
    """One base script; ``script`` of the settings names it."""

    @classmethod
    def draw(cls, random: Random, actions: Actions) -> dict[str, Any]:
        bases = material_of(actions.protocol).bases
        fitting = [name for name, one in bases.items() if not one.costly and OTHER_WIRE not in one.server]
        base = bases[random.choice(sorted(fitting))]
        return {"script": base.name, "nodes": base.server.get("nodes", 1)}

    @classmethod
    def bears(cls, actions: Actions, params: Mapping[str, Any]) -> bool:
        return material_of(actions.protocol).bases[params["script"]].injections

    @classmethod
    def options(cls, actions: Actions, params: Mapping[str, Any]) -> dict[str, Any]:
        return dict(material_of(actions.protocol).bases[params["script"]].server)

    async def phases(self) -> None:
        self.context.disturb()
        await asyncio.sleep(0)  # what begins at once begins before the client connects
        try:
            await material_of(self.actions.protocol).bases[self.params["script"]].script(self.context)
        finally:
            await self.context.heal()
