"""How an application of Moleculer calls, serves and listens. It has no confirms, so no session publishes."""

from __future__ import annotations

from random import Random
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.search.random.actions import Actions
from conformance.search.random.context import ChaosContext
from fakebrokers.core.frames import Role
from scenarios.moleculer.sweep._shared import CONNECT_S, MET_S, PEER, PROBE, peer
from scenarios.moleculer.sweep.serving import ACTIONS as SERVED

CALL_S = 4.0


class MoleculerActions(Actions):
    """See `conformance.search.random.actions.Actions`."""

    protocol = "moleculer"
    kinds = ("consume", "request", "mixed")
    roles = {"consume": "listener", "request": "caller", "mixed": "caller"}  # noqa: RUF012
    canary = "calls-without-deadline"
    recover_s = 60.0
    drain_s = 5.0
    also = (
        ("in", Role.DATA), ("in", Role.RESPONSE), ("out", Role.DATA), ("out", Role.OPEN),
        ("out", Role.REQUEST),
    )  # fmt: skip # every node asks and answers
    without = ("half-open",)  # only the operating system would notice, after a quarter of an hour
    connect_s = CONNECT_S
    probe = ("mol.call", PROBE)

    def draw(self, random: Random, kind: str) -> dict[str, Any]:
        found = {
            "serves": random.random() < 0.5,
            "peers": random.choice((1, 1, 2)),
            "size": random.choice((0, 20, 300)),
        }
        if kind != "request":
            found["sessions"] = 1  # which of several nodes has to get an event is the sender's choice
        return found

    def connecting_of(self, number: int) -> dict[str, Any]:
        return {"node_id": f"client{number}"}

    def target(self, number: int, *, read: bool) -> str:
        return f"news{number}"

    async def prepare(self, context: ChaosContext, targets: list[str]) -> None:
        if "peers" not in context.memo:
            count = context.schedule.params.get("peers", 1)
            names = [PEER, "second"][:count]
            context.memo["peers"] = [peer(context, name) for name in names]

    async def joined(self, context: ChaosContext, session: str) -> None:
        await context.sleep(MET_S)
        if context.schedule.params.get("serves"):
            await context.op("mol.serve", 8.0, session=session, service="s", actions=SERVED)

    async def subscribe(
        self, context: ChaosContext, session: str, sub: str, target: str, params: Any
    ) -> bool:
        reported = {"mode": "event", "sleep_ms": params.get("sleep_ms", 0)}
        given = {"session": session, "sub": sub, "event": f"{target}.*", "on_message": reported}
        result = await context.op("mol.listen", 8.0, **given)
        await context.sleep(MET_S)
        return result.ok

    def put(self, context: ChaosContext, target: str, body: str) -> None:
        node = context.memo["peers"][0]
        node.emit(f"{target}.come", {"body": body})
        if context.schedule.params.get("serves"):
            node.start_call("s.echo", {"body": body}, target="client1", timeout=5.0)

    def ask(self, context: ChaosContext, session: str, number: int) -> Call:
        action = ("p.echo", "p.echo", "p.fail", "p.wait")[number % 4]
        params = {"n": number, "of": session, "code": 422}
        given = {"action": action, "params": params, "timeout_ms": CALL_S * 1000}
        return context.begin("mol.call", CALL_S, session=session, **given)


ACTIONS = MoleculerActions()
