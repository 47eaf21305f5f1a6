"""What the base scripts of NATS share."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, text

EVENTS = {"mode": "event"}
PROBE: dict[str, Any] = {"target": "jobs", "wait": True, "body": text("probe")}
LOOK_S = 10.0


def answering(context: ScriptContext) -> None:
    """Somebody answers to ``echo``, somebody listens to ``mute`` and never answers."""
    context.broker.respond("echo", lambda _, payload: payload)
    context.broker.respond("mute", lambda _, payload: None)


def put(context: ScriptContext, subject: str, *bodies: str) -> None:
    """Messages of another client."""
    for body in bodies:
        context.broker.publish(subject, body)


async def publish(context: ScriptContext, *bodies: str, target: str = "jobs", wait: bool = True) -> None:
    """Publish one after the other."""
    for body in bodies:
        await context.op("publish", target=target, wait=wait, body=text(body))


async def request(context: ScriptContext, body: str, target: str = "echo") -> None:
    """Ask, and wait for the answer."""
    await context.op("nats.request", target=target, body=text(body))


async def subscribed(
    context: ScriptContext, target: str, sub: str = "c1", on_message: Any = EVENTS, **options: Any
) -> None:
    """Listen."""
    await context.op("subscribe", sub=sub, target=target, options=options, on_message=on_message)


async def watched(context: ScriptContext, *subjects: str) -> None:
    """Clear the faults, and see that messages still come."""
    context.calm()
    await context.sleep(LOOK_S)
    for subject in subjects:
        put(context, subject, f"last of {subject}")
    await context.sleep(LOOK_S)
    context.mark("subscribed")
