"""What the base scripts of Narconi share."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, text
from scenarios.narconi.traits import PROJECT

PUBLISH: dict[str, Any] = {"target": "P", "wait": True}
PROBE: dict[str, Any] = {**PUBLISH, "body": text("probe")}
EVENTS = {"mode": "event"}
SETTLING = {"mode": "event", "auto_settle": "ack"}
LONG_S = 120.0  #: in which every back-off ends
LOOK_S = 10.0


def queues(context: ScriptContext, *names: str) -> None:
    """Create these queues of the project, or ``P``."""
    for name in names or ("P",):
        context.broker.create_queue(PROJECT, name)


def put(context: ScriptContext, queue: str, *bodies: str, **more: Any) -> None:
    """Messages of another publisher."""
    for body in bodies:
        context.broker.publish(PROJECT, queue, body.encode(), **more)


async def watched(context: ScriptContext, queue: str, body: str) -> None:
    """Clear the faults, wait until every back-off has ended, and see that messages still come."""
    context.calm()
    await context.sleep(LONG_S)
    put(context, queue, body)
    await context.sleep(LOOK_S)
    context.mark("subscribed")
