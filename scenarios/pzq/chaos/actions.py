"""How an application of PZQ produces, consumes and asks. There is one queue, and it has no name."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.run.bases import text
from conformance.search.random.actions import Actions
from conformance.search.random.context import ChaosContext


class PzqActions(Actions):
    """See `conformance.search.random.actions.Actions`."""

    protocol = "pzq"
    canary = "acknowledges-on-arrival"
    recover_s = 20.0
    drain_s = 10.0
    forgets = True
    #: What is read late looks as if it had been written late; and no side would notice a host that is gone.
    without = ("stall", "half-open")
    probe = ("publish", {"target": "", "wait": True, "body": text("probe")})

    def draw(self, random: Random, kind: str) -> dict[str, Any]:
        return {
            "ack_timeout": random.choice((1_000_000, 5_000_000)),
            "reaper_frequency": 500_000,
            "settles": random.choice(("auto", "auto", "hand")),
        }

    def options(self, params: Mapping[str, Any]) -> dict[str, Any]:
        names = {"ack_timeout": "ack_timeout_s", "reaper_frequency": "reaper_interval_s"}
        return {new: params[name] / 1e6 for name, new in names.items() if name in params}

    def target(self, number: int, *, read: bool) -> str:
        return ""

    async def subscribe(
        self, context: ChaosContext, session: str, sub: str, target: str, params: Any
    ) -> bool:
        reported: dict[str, Any] = {"mode": "event", "sleep_ms": params.get("sleep_ms", 0)}
        if params.get("settles") != "hand":
            reported["auto_settle"] = "ack"
        given: dict[str, Any] = {
            "session": session,
            "sub": sub,
            "target": target,
            "options": {},
            "on_message": reported,
        }
        return (await context.op("subscribe", **given)).ok

    def put(self, context: ChaosContext, target: str, body: str) -> None:
        context.broker.publish(body.encode())

    def ask(self, context: ChaosContext, session: str, number: int) -> Call:
        return context.begin("pzq.monitor", session=session)

    async def settle(self, context: ChaosContext, sub: str) -> int:
        by_hand = context.schedule.params.get("settles") == "hand"
        return await context.settle_all(sub) if by_hand else 0


ACTIONS = PzqActions()
