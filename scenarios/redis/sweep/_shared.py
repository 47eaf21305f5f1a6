"""What the base scripts of Redis share."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, text

PUBLISH: dict[str, Any] = {"target": "P", "wait": True}
PROBE: dict[str, Any] = {**PUBLISH, "body": text("probe")}
EVENTS = {"mode": "event"}
GET, SET, INCR = ["GET", "K"], ["SET", "K", "value"], ["INCR", "N"]
POP = ["BLPOP", "L", "1"]
LONG_S = 60.0  #: in which every back-off has ended
LOOK_S = 10.0


def put(context: ScriptContext, target: str, *bodies: str) -> None:
    """Messages of nobody, for whoever listens now."""
    for body in bodies:
        context.broker.publish(target, body)


async def subscribed(context: ScriptContext, target: str = "C", sub: str = "c1", **more: Any) -> None:
    """Subscribe."""
    args = {"options": {}, "on_message": EVENTS, **more}
    await context.op("subscribe", sub=sub, target=target, **args)


async def watched(context: ScriptContext, body: str, target: str = "C") -> None:
    """Clear the faults, wait until every back-off has ended, and see that messages still come."""
    context.calm()
    await context.sleep(LONG_S)
    put(context, target, body)
    await context.sleep(LOOK_S)
    context.mark("subscribed")
