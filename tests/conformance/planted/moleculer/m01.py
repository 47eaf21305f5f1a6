"""Names of events are matched with their dots as "any character": a listener of ``order.created`` counts as
one of ``order-created``, and gets what is not for it. Like moleculer 517 (patterns of events that match
wrongly).
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer import registry
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer
from fakebrokers.moleculer.services import Service


def plant() -> None:
    """Install the defect."""

    @lru_cache(maxsize=256)
    def expression(pattern: str) -> re.Pattern[str]:
        words = {"**": ".*", "*": "[^.]*", "?": "."}
        parts = [words.get(part) or part for part in re.split(r"(\*\*|\*|\?)", pattern)]
        try:
            return re.compile("".join(parts))
        except re.error:
            return re.compile(re.escape(pattern))

    registry._expression = expression


async def witness() -> None:
    """Nothing is sent to who does not listen."""
    async with Moleculer(memory=True) as bus:
        bus.node("listener", [Service("shop", events={"order.created": lambda context: None})])
        settings = Settings(transporter="nats", endpoints=(f"{bus.host}:{bus.port}",))
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        await asyncio.sleep(2)
        for name in ("order.created", "order-created"):
            client.events.emit(name, {"id": 1})
        await asyncio.sleep(1)
        sent = [packet.event for _, packet in bus.packets("Event")]
        client.abort()
    assert sent == ["order.created"], sent
