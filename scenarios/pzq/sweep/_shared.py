"""What the base scripts of PZQ share."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, text

PUBLISH: dict[str, Any] = {"target": "", "wait": True}
PROBE: dict[str, Any] = {**PUBLISH, "body": text("probe")}
EVENTS = {"mode": "event"}
ACKING = {"mode": "event", "auto_settle": "ack"}
QUICK = {"ack_timeout_s": 1.0, "reaper_interval_s": 0.5}
PATIENT = {"ack_timeout_s": 2.0, "reaper_interval_s": 0.2}
LOOK_S = 10.0


def put(context: ScriptContext, *bodies: str) -> None:
    """Messages of another producer."""
    for body in bodies:
        context.broker.publish(body.encode())


async def subscribed(context: ScriptContext, on_message: Any, sub: str = "c1", **options: Any) -> None:
    """Subscribe; the fake forgets what is acknowledged."""
    context.notes.forgets = True  # what is acknowledged is gone
    await context.op("subscribe", sub=sub, target="", options=options, on_message=on_message)


async def watched(context: ScriptContext, body: str) -> None:
    """Clear the faults, and see that messages still come."""
    context.calm()
    await context.sleep(LOOK_S)
    put(context, body)
    await context.sleep(LOOK_S)
    context.mark("subscribed")


async def settle_all(context: ScriptContext, how: str, *, backwards: bool = False, sub: str = "c1") -> None:
    """Settle all that the application has got so far, again what is settled too."""
    refs = [
        event["ref"] for event in context.adapter.events if event.event == "message" and event["sub"] == sub
    ]
    for ref in reversed(refs) if backwards else refs:
        await context.op("settle", sub=sub, ref=ref, how=how)
