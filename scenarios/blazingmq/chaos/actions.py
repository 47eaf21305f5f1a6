"""How an application of BlazingMQ publishes, consumes and asks. A queue's name in ops is its URI."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.run.bases import text
from conformance.search.random.actions import Actions
from conformance.search.random.context import ChaosContext

PRIORITY = "bmq://bmq.test.mem.priority/"
PROBE = PRIORITY + "probe-kept"  #: no consumer reads it


class BlazingActions(Actions):
    """See `conformance.search.random.actions.Actions`."""

    protocol = "blazingmq"
    canary = "forgets-queues"
    recover_s = 300.0
    reads_once = True
    remote = True
    probe_target = PROBE
    probe = ("publish", {"target": PROBE, "wait": True, "body": text("probe")})

    def draw(self, random: Random, kind: str) -> dict[str, Any]:
        return {
            "heartbeat_ms": random.choice((20_000, 3000)),
            "max_missed": 4,
            "nodes": random.choice((1, 1, 3)),
            "window": random.choice((1, 5, 100)),
            "settles": random.choice(("auto", "auto", "hand")),
        }

    def options(self, params: Mapping[str, Any]) -> dict[str, Any]:
        times = {"heartbeat_s": params["heartbeat_ms"] / 1000} if "heartbeat_ms" in params else {}
        return {**times, **{name: params[name] for name in ("max_missed", "nodes") if name in params}}

    def target(self, number: int, *, read: bool) -> str:
        return PRIORITY + (f"read{number}" if read else f"q{number}-kept")

    async def open(self, context: ChaosContext, session: str, target: str) -> bool:
        if (session, target) in context.memo:
            return True  # its consumer has opened it for both
        return await self._opened(context, session, target, ["write"], {})

    async def subscribe(
        self, context: ChaosContext, session: str, sub: str, target: str, params: Any
    ) -> bool:
        options = {"max_unconfirmed_messages": params.get("window", 100)}
        if (session, target) not in context.memo:
            if not await self._opened(context, session, target, ["read", "write"], options):
                return False
            context.memo[session, target] = True
        reported: dict[str, Any] = {"mode": "event", "sleep_ms": params.get("sleep_ms", 0)}
        if params.get("settles") != "hand":
            reported["auto_settle"] = "ack"
        result = await context.op("subscribe", session=session, sub=sub, target=target, on_message=reported)
        return result.ok

    async def _opened(
        self, context: ChaosContext, session: str, target: str, flags: list[str], options: Mapping[str, Any]
    ) -> bool:
        given: dict[str, Any] = {
            "session": session,
            "target": target,
            "uri": target,
            "flags": flags,
            "options": options,
        }
        return (await context.op("bmq.open_queue", 5.0, **given)).ok

    def put(self, context: ChaosContext, target: str, body: str) -> None:
        context.broker.publish(target, body.encode())

    def ask(self, context: ChaosContext, session: str, number: int) -> Call:
        uri = PRIORITY + f"asked-{session}-{number // 2}"
        if number % 2:
            return context.begin("bmq.close_queue", session=session, target=uri)
        given: dict[str, Any] = {"session": session, "target": uri, "uri": uri, "flags": ["write"]}
        return context.begin("bmq.open_queue", **given)

    async def settle(self, context: ChaosContext, sub: str) -> int:
        by_hand = context.schedule.params.get("settles") == "hand"
        return await context.settle_all(sub) if by_hand else 0


ACTIONS = BlazingActions()
