"""All actions share one counter for whose turn it is: a program that calls two actions in turn sends each
of them to one node only, however many offer it. Like spring-cloud-commons 1144 (a counter of a round robin
that others move, too).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.registry import Registry
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""
    original = Registry.next_of

    def next_of(self: Registry, what: str, ids: list[str]) -> str | None:
        return original(self, "", ids)

    Registry.next_of = next_of  # type: ignore[method-assign]


async def witness() -> None:
    """Both nodes get calls of both actions."""
    asked: dict[str, set[str | None]] = {"shop.look": set(), "shop.buy": set()}
    async with Moleculer(memory=True) as bus:
        for name in ("one", "two"):
            bus.node(name, {"shop": {"look": lambda context: 1, "buy": lambda context: 2}})
        settings = Settings(transporter="nats", endpoints=(f"{bus.host}:{bus.port}",))
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        await asyncio.sleep(2)
        for _ in range(6):
            for action, nodes in asked.items():
                _, call = await client.caller.call(action, timeout=5)
                nodes.add(call.answered_by)
        client.abort()
    assert asked == {"shop.look": {"one", "two"}, "shop.buy": {"one", "two"}}, asked
