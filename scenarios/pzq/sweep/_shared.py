"""What the base scripts of PZQ share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from conformance.run.bases import ScriptContext, text
from conformance.run.trace import Trace
from fakebrokers import PZQ
from fakebrokers.core.watch import End
from scenarios._common import second_fake
from scenarios.pzq.sweep.tracking import SECOND

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


class SecondInTrace:
    """Notes a second instance in the trace of a run, its connections under names of their own."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def accepted(self, connection: str, socket: str = "") -> None:
        self._trace.accepted(SECOND + connection, socket)

    def written(self, connection: str, data: Any) -> None:
        self._trace.written(SECOND + connection, data)

    def handed_over(self, connection: str, data: Any) -> None:
        self._trace.handed_over(SECOND + connection, data)

    def reads(self, connection: str, goes_on: bool) -> None:
        self._trace.reads(SECOND + connection, goes_on)

    def ended(self, connection: str, by: End, how: str) -> None:
        self._trace.ended(SECOND + connection, by, how)


@contextmanager
def second_instance(context: ScriptContext, **server: Any) -> Iterator[PZQ]:
    """Another daemon, with an identity of its own, which the trace has too."""
    with second_fake(context.broker, watcher=SecondInTrace(context.trace), **server) as other:
        yield other
