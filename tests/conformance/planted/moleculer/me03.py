"""A * in the name of an event stands for any number of segments, as ** does. Like njouanin/hbmqtt 44 (the
wildcard for one level matches more than one).
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer import registry
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def expression(pattern: str) -> re.Pattern[str]:
        words = {"**": ".*", "*": ".*", "?": "."}
        return re.compile(
            "".join([words.get(part) or re.escape(part) for part in re.split(r"(\*\*|\*|\?)", pattern)])
        )

    registry._expression = expression  # type: ignore[assignment]


async def witness() -> None:
    """A listener to "user.*" does not get "user.created.twice", which another one of the node gets."""
    async with Moleculer(memory=True, faults={"faults": []}) as moleculer:
        settings = Settings(transporter="nats", endpoints=(moleculer.url.partition("//")[2],))
        client = MoleculerClient(Runtime(Memory()), settings)
        node = moleculer.node("fake-1")
        await client.connect(5.0)
        came: list[tuple[str, str]] = []
        for group, pattern in (("one", "user.*"), ("all", "user.**")):

            async def take(packet: Any, group: str = group) -> None:
                came.append((group, packet["event"]))

            client.serve(Service(group, events={pattern: ""}))
            client.events.listen(pattern, group, take)
        await asyncio.sleep(2)
        node.broadcast("user.created")
        node.broadcast("user.created.twice")
        await asyncio.sleep(2)
        client.abort()
    wanted = [("all", "user.created"), ("all", "user.created.twice"), ("one", "user.created")]
    assert sorted(came) == wanted, came
