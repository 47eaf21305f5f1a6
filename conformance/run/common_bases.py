"""Base scripts that protocols have in common: each gives what it prepares and what it asks at last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from conformance.run.bases import Base, ScriptContext, base
from fakebrokers.faults import fin

MOMENT_S = 0.05  #: for which a connection stands that is made for nothing
MINUTES_S = 150.0  #: long enough for pauses to grow to what they are at most
REST_S = 60.0  #: in which the longest of them is over

Prepare = Callable[[ScriptContext], Awaitable[None]]


def ends_at_once(prepare: Prepare, probe: str, *, role: str = "publisher", **args: Any) -> Base:
    """Connections that are made well and come to nothing.

    Args:
        prepare: Connects, and whatever gives the client a reason to come back.
        probe: The op that has to work at last, with its arguments.
    """

    async def script(context: ScriptContext) -> None:
        """The server takes each connection and ends it a moment later, for minutes; then it lets them be."""
        await prepare(context)
        context.broker.faults.add(fin(on="ready", after_s=MOMENT_S, scope="run"))
        context.kill()
        await context.sleep(MINUTES_S)
        context.calm()
        await context.sleep(REST_S)
        await context.finale(probe, **args)

    return base(role=role, injections=False, name="ends-at-once")(script)
