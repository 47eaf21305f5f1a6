"""The fake that one op of each role is tried at."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.check_fixture import NAME, CheckFixture, Op
from fakebrokers import Moleculer


def _session(op: str, **args: Any) -> tuple[Op, ...]:
    return ((op, {"session": NAME, **args}),)


def check_fixture() -> CheckFixture:
    """See `conformance.clients.adapter.check_fixture`; a burst of messages has no place here."""
    broker = Moleculer()

    def prepare() -> str:
        broker.node("peer", {"p": {"echo": lambda ctx: ctx.params}}, heartbeat_s=1.0)
        return NAME

    return CheckFixture(
        broker,
        prepare,
        list,
        options=lambda: {"transporter": broker.url, "node_id": NAME},
        tries={
            "caller": lambda _: _session("mol.call", action="p.echo", params={"n": 1}),
            "service": lambda name: _session("mol.serve", service=name, actions={"echo": "echo"}),
            "emitter": lambda name: _session("mol.emit", event=name, data={"n": 1}),
            "listener": lambda name: _session("mol.listen", event=name, on_message={"mode": "event"}),
        },
    )
