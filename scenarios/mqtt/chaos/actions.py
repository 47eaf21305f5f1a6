"""How an application of MQTT publishes and subscribes."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from conformance.clients.adapter.base import Call
from conformance.run.bases import text
from conformance.search.random.actions import PUBLISH_S, Actions
from conformance.search.random.context import ChaosContext

PROBE = "orders/probe"


class MqttActions(Actions):
    """See `conformance.search.random.actions.Actions`."""

    protocol = "mqtt"
    kinds = ("publish", "consume", "mixed")
    canary = "acks-without-confirm"
    recover_s = 60.0
    forgets = True
    reads_once = True
    probe = ("publish", {"target": PROBE, "wait": True, "body": text("probe")})
    server: ClassVar[Mapping[str, Any]] = {}

    def draw(self, random: Random, kind: str) -> dict[str, Any]:
        return {"qos": random.choice((1, 1, 2))}

    def target(self, number: int, *, read: bool) -> str:
        return f"read/{number}" if read else f"written/{number}"

    async def subscribe(
        self, context: ChaosContext, session: str, sub: str, target: str, params: Any
    ) -> bool:
        reported: dict[str, Any] = {"mode": "event", "sleep_ms": params.get("sleep_ms", 0)}
        given: dict[str, Any] = {
            "session": session,
            "sub": sub,
            "target": target,
            "options": {"qos": 1},
            "on_message": reported,
        }
        return (await context.op("subscribe", **given)).ok

    def publish(self, context: ChaosContext, session: str, target: str, body: str, *, wait: bool) -> Call:
        qos = context.schedule.params.get("qos", 1)
        given: dict[str, Any] = {"session": session, "target": target, "body": text(body), "wait": wait}
        return context.begin("publish", PUBLISH_S, qos=qos, **given)

    def put(self, context: ChaosContext, target: str, body: str) -> None:
        context.broker.publish(target, body.encode(), qos=1)


ACTIONS = MqttActions()
