"""One counter chooses the node for all actions: an application that calls two actions in turns sends all
calls of the one to one node, and all of the other to the other. Like austin-bowen/rosy 17 (the same
balancer for all groups).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.registry import Registry
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def next_of(self: Any, what: str, ids: list[str]) -> str | None:
        if not ids:
            return None
        turn: int = self._turns.get("", 0)
        self._turns[""] = turn + 1
        return ids[turn % len(ids)]

    Registry.next_of = next_of  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node of it."""
    place = server.url.partition("//")[2]
    return MoleculerClient(
        Runtime(Memory()), Settings(transporter=server.transporter, endpoints=(place,), **more)
    )


async def witness() -> None:
    """Both nodes get calls of both actions."""
    asked: dict[str, set[str | None]] = {"svc.a": set(), "svc.b": set()}
    async with Moleculer(memory=True) as server:
        for id in ("one", "two"):
            server.node(id, services={"svc": {"a": lambda context: 1, "b": lambda context: 2}})
        client = made(server)
        await client.connect(10)
        for _ in range(4):
            for action, nodes in asked.items():
                _, known = await client.caller.call(action, timeout=2.0)
                nodes.add(known.answered_by)
        client.abort()
    assert all(nodes == {"one", "two"} for nodes in asked.values()), asked
