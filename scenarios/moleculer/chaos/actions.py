"""How an application of Moleculer calls, serves and listens. It has no confirms, so no session publishes."""

from __future__ import annotations

from random import Random
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.search.random.actions import Actions
from conformance.search.random.scene import ChaosContext
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

    async def prepare(self, scene: ChaosContext, targets: list[str]) -> None:
        if "peers" not in scene.memo:
            count = scene.schedule.params.get("peers", 1)
            names = [PEER, "second"][:count]
            scene.memo["peers"] = [peer(scene, name) for name in names]

    async def joined(self, scene: ChaosContext, session: str) -> None:
        await scene.sleep(MET_S)
        if scene.schedule.params.get("serves"):
            await scene.op("mol.serve", 8.0, session=session, service="s", actions=SERVED)

    async def subscribe(self, scene: ChaosContext, session: str, sub: str, target: str, params: Any) -> bool:
        told = {"mode": "event", "sleep_ms": params.get("sleep_ms", 0)}
        given = {"session": session, "sub": sub, "event": f"{target}.*", "on_message": told}
        result = await scene.op("mol.listen", 8.0, **given)
        await scene.sleep(MET_S)
        return result.ok

    def put(self, scene: ChaosContext, target: str, body: str) -> None:
        node = scene.memo["peers"][0]
        node.emit(f"{target}.come", {"body": body})
        if scene.schedule.params.get("serves"):
            node.start_call("s.echo", {"body": body}, target="client1", timeout=5.0)

    def ask(self, scene: ChaosContext, session: str, number: int) -> Call:
        action = ("p.echo", "p.echo", "p.fail", "p.wait")[number % 4]
        params = {"n": number, "of": session, "code": 422}
        given = {"action": action, "params": params, "timeout_ms": CALL_S * 1000}
        return scene.begin("mol.call", CALL_S, session=session, **given)


ACTIONS = MoleculerActions()
