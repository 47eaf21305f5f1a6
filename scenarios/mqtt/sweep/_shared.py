"""What the base scripts of MQTT share. A target is a topic or a filter."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.result import Result
from conformance.run.bases import ScriptContext, text

R = "orders/read"
W = "orders/written"  #: nobody listens to it
EVENTS = {"mode": "event"}
PUBLISH: dict[str, Any] = {"target": W, "wait": True}
PROBE: dict[str, Any] = {**PUBLISH, "body": text("probe")}
LASTING: dict[str, Any] = {"client_id": "lasting", "clean": False}
LONG_S = 60.0  #: in which every back-off ends
LOOK_S = 10.0


def put(context: ScriptContext, *bodies: str, topic: str = R, qos: int = 1) -> None:
    """Messages of another client."""
    for body in bodies:
        context.broker.publish(topic, body.encode(), qos=qos)


async def subscribed(
    context: ScriptContext, sub: str = "c1", target: str = R, on_message: Any = None, **options: Any
) -> Result:
    """Subscribe in the first session."""
    plan = on_message or EVENTS
    return await context.op("subscribe", sub=sub, target=target, options=options, on_message=plan)


async def watched(context: ScriptContext, body: str, topic: str = R) -> None:
    """Clear the faults, wait until every back-off has ended, and see that messages still come."""
    context.calm()
    await context.sleep(LONG_S)
    put(context, body, topic=topic)
    await context.sleep(LOOK_S)
    context.mark("subscribed")
