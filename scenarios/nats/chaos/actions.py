"""How an application of NATS publishes, listens and asks."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.base import Call
from conformance.run.bases import text
from conformance.search.random.actions import Actions
from conformance.search.random.context import ChaosContext

ASK_S = 4.0


class NatsActions(Actions):
    """See `conformance.search.random.actions.Actions`."""

    protocol = "nats"
    roles = {  # noqa: RUF012 # as its type says
        "publish": "publisher",
        "consume": "consumer",
        "request": "requester",
        "mixed": "consumer",
    }
    canary = "stays-unsubscribed"
    recover_s = 30.0
    drain_s = 5.0
    probe = ("nats.request", {"target": "echo", "body": text("probe")})

    def target(self, number: int, *, read: bool) -> str:
        return f"news.{number}"

    async def prepare(self, context: ChaosContext, targets: list[str]) -> None:
        if "answers" not in context.memo:
            context.memo["answers"] = True
            context.broker.respond("echo", lambda _, payload: payload)
            context.broker.respond("mute", lambda _, payload: None)

    async def subscribe(
        self, context: ChaosContext, session: str, sub: str, target: str, params: Any
    ) -> bool:
        reported = {"mode": "event", "sleep_ms": params.get("sleep_ms", 0)}
        options = {"queue": "all"}  # each message is for one of those who listen
        given: dict[str, Any] = {"session": session, "sub": sub, "target": target, "options": options}
        return (await context.op("subscribe", on_message=reported, **given)).ok

    def put(self, context: ChaosContext, target: str, body: str) -> None:
        context.broker.publish(target, body)

    def ask(self, context: ChaosContext, session: str, number: int) -> Call:
        subject = ("echo", "echo", "nowhere", "mute")[number % 4]
        given = {"target": subject, "body": text(f"{session} asks {number}")}
        return context.begin("nats.request", ASK_S, session=session, **given)


ACTIONS = NatsActions()
