"""How an application of Redis publishes, listens and asks."""

from __future__ import annotations

from random import Random
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.run.bases import text
from conformance.search.random.actions import Actions
from conformance.search.random.context import ChaosContext


class RedisActions(Actions):
    """See `conformance.search.random.actions.Actions`."""

    protocol = "redis"
    canary = "last-asked-first-answered"
    recover_s = 30.0
    forgets = True
    reads_once = True
    #: What comes late would be executed in another order, which no TCP connection shows a server.
    without = ("delay", "reorder")
    connecting = {"auto_reconnect": True}  # noqa: RUF012 # as its type says
    probe = ("publish", {"target": "probe", "wait": True, "body": text("probe")})

    def draw(self, random: Random, kind: str) -> dict[str, Any]:
        return {"way": random.choice(("channel", "channel", "pattern"))}

    def target(self, number: int, *, read: bool) -> str:
        return f"C{number}" if read else f"P{number}"

    async def subscribe(
        self, context: ChaosContext, session: str, sub: str, target: str, params: Any
    ) -> bool:
        given: dict[str, Any] = {
            "session": session,
            "sub": sub,
            "target": target,
            "options": {"way": params.get("way", "channel")},
            "on_message": {"mode": "event", "sleep_ms": params.get("sleep_ms", 0)},
        }
        return (await context.op("subscribe", **given)).ok

    def put(self, context: ChaosContext, target: str, body: str) -> None:
        context.broker.publish(target, body)

    def ask(self, context: ChaosContext, session: str, number: int) -> Call:
        words = (["SET", f"K{session}", str(number)], ["GET", f"K{session}"], ["INCR", f"N{session}"])
        return context.begin("redis.call", session=session, words=words[number % 3])


ACTIONS = RedisActions()
