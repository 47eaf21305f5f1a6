"""With a serializer that has a schema, parameters that are 0, false or empty arrive as null. Like
node-rdkafka 36 and librdkafka 1357 (empty and none taken for the same).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.packing import NULL, UNDEFINED, Packing
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""
    original = Packing.typed

    def typed(self: Packing, name: str, packet: Mapping[str, Any]) -> tuple[bytes | None, int]:
        value = packet.get(name)
        if not value and value != {}:
            return None, NULL if name in packet else UNDEFINED
        return original(self, name, packet)

    Packing.typed = typed  # type: ignore[method-assign]


async def witness() -> None:
    """The action gets what was sent."""
    wanted: list[Any] = [0, False, "", 7]
    found = []
    async with Moleculer(memory=True, profile="0.14", serializer="ProtoBuf") as bus:
        bus.node("echo", {"echo": {"say": lambda context: {"params": context.params}}})
        place = (f"{bus.host}:{bus.port}",)
        settings = Settings(transporter="nats", endpoints=place, serializer="ProtoBuf")
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        await asyncio.sleep(2)
        for params in wanted:
            data, _ = await client.caller.call("echo.say", params, timeout=5)
            found.append(data["params"])
        client.abort()
    assert found == wanted, found
