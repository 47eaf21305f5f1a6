"""How an application of Narconi publishes, consumes and asks."""

from __future__ import annotations

from random import Random
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.run.bases import text
from conformance.search.random.actions import Actions
from conformance.search.random.context import ChaosContext
from scenarios.narconi.traits import PROJECT


class NarconiActions(Actions):
    """See `conformance.search.random.actions.Actions`."""

    protocol = "narconi"
    canary = "one-confirm-per-segment"
    recover_s = 120.0
    forgets = True
    connecting = {"auto_reconnect": True}  # noqa: RUF012 # as its type says
    remote = True
    probe_target = "probe"
    probe = ("publish", {"target": probe_target, "wait": True, "body": text("probe")})

    def draw(self, random: Random, kind: str) -> dict[str, Any]:
        return {"limit": random.choice((1, 3, 20)), "acks": random.choice((True, True, False))}

    def target(self, number: int, *, read: bool) -> str:
        return f"C{number}" if read else f"P{number}"

    async def prepare(self, context: ChaosContext, targets: list[str]) -> None:
        for target in targets:
            context.broker.create_queue(PROJECT, target)

    async def open(self, context: ChaosContext, session: str, target: str) -> bool:
        return not context.is_remote or await self._made(context, session, target)

    async def _made(self, context: ChaosContext, session: str, target: str) -> bool:
        """Whether a queue of a real server is there."""
        return (await context.op("narc.ensure_queue", session=session, target=target)).ok

    async def subscribe(
        self, context: ChaosContext, session: str, sub: str, target: str, params: Any
    ) -> bool:
        if context.is_remote and not await self._made(context, session, target):
            return False
        reported: dict[str, Any] = {"mode": "event", "sleep_ms": params.get("sleep_ms", 0)}
        options: dict[str, Any] = {}
        if params.get("acks", True):
            reported["auto_settle"] = "ack"
            options = {"ack": True, "limit": params.get("limit", 20)}
        given: dict[str, Any] = {
            "session": session,
            "sub": sub,
            "target": target,
            "options": options,
            "on_message": reported,
        }
        return (await context.op("subscribe", **given)).ok

    def put(self, context: ChaosContext, target: str, body: str) -> None:
        if f"{PROJECT}_{target}" in context.broker.queues:
            context.broker.publish(PROJECT, target, body.encode())

    def ask(self, context: ChaosContext, session: str, number: int) -> Call:
        own = f"N-{session}-{number // 3}"
        match number % 3:
            case 0:
                return context.begin("narc.ensure_queue", session=session, target=own)
            case 1:
                body = text(f"{own}-{number}")
                return context.begin("narc.post", session=session, target=own, body=body)
            case _:
                return context.begin("narc.take", session=session, target=own)


ACTIONS = NarconiActions()
