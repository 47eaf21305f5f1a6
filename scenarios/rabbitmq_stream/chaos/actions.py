"""How an application of RabbitMQ Stream publishes, consumes and asks."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.run.bases import text
from conformance.search.random.actions import Actions
from conformance.search.random.context import ChaosContext
from scenarios.rabbitmq_stream.sweep._shared import record


class StreamActions(Actions):
    """See `conformance.search.random.actions.Actions`."""

    protocol = "rabbitmq-stream"
    recover_s = 700.0
    canary = "crc-signed"
    remote = True
    probe_target = "probe"
    probe = ("publish", {"target": probe_target, "wait": True, "body": text("probe")})

    def draw(self, random: Random, kind: str) -> dict[str, Any]:
        return {
            "nodes": random.choice((1, 1, 3)),
            "heartbeat_s": random.choice((60, 60, 5)),
            "credit": random.choice((1, 2, 10)),
        }

    def options(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {name: params[name] for name in ("nodes", "heartbeat_s") if name in params}

    def target(self, number: int, *, read: bool) -> str:
        return f"S{number + 1}"

    async def prepare(self, context: ChaosContext, targets: list[str]) -> None:
        for target in targets:
            context.broker.create_stream(target)

    async def open(self, context: ChaosContext, session: str, target: str) -> bool:
        return not context.is_remote or await self._made(context, session, target)

    async def _made(self, context: ChaosContext, session: str, target: str) -> bool:
        """Whether a stream of a real server is there; another session may have made it."""
        result = await context.op("rmqs.create", session=session, target=target)
        return result.ok or result.word == "refused"

    async def subscribe(
        self, context: ChaosContext, session: str, sub: str, target: str, params: Any
    ) -> bool:
        if context.is_remote and not await self._made(context, session, target):
            return False
        options = {"offset": {"type": "first"}, "credit": params.get("credit", 10)}
        reported = {"mode": "event", "sleep_ms": params.get("sleep_ms", 0)}
        result = await context.op(
            "subscribe", session=session, sub=sub, target=target, options=options, on_message=reported
        )
        return result.ok

    def put(self, context: ChaosContext, target: str, body: str) -> None:
        if target in context.broker.streams:
            context.broker.publish(target, [record(context, body)])

    def ask(self, context: ChaosContext, session: str, number: int) -> Call:
        own = f"{session}-{number}"  # two sessions never ask the same: their answers would look alike
        first = context.own("S1")
        asks: tuple[tuple[str, dict[str, Any]], ...] = (
            ("rmqs.query_sequence", {"target": first, "name": own}),
            ("rmqs.metadata", {"targets": [first if session == "s1" else own]}),
            ("rmqs.query_offset", {"target": first, "name": own}),
        )
        op, args = asks[number % len(asks)]
        return context.begin(op, session=session, **args)


ACTIONS = StreamActions()
