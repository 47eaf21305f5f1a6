"""The pattern of a listener becomes a regular expression without escaping what else has a meaning there: a
dot fits any character. Like home-assistant/core 7269 and thingsboard/thingsboard-gateway 2085 (topic filters
are turned into regular expressions with their metacharacters).
"""

from __future__ import annotations

import asyncio
import re

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer import registry
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer
from fakebrokers.moleculer.services import Service


def plant() -> None:
    """Install the defect."""

    def expression(pattern: str) -> re.Pattern[str]:
        words = {"**": ".*", "*": r"[^.]*", "?": "."}
        return re.compile("".join([words.get(part, part) for part in re.split(r"(\*\*|\*|\?)", pattern)]))

    registry._expression = expression  # type: ignore[assignment]


async def witness() -> None:
    """An event goes to those only whose pattern has its name."""
    async with Moleculer(memory=True) as moleculer:
        peer = moleculer.node("peer", [Service("mail", events={"user.created": lambda ctx: None})])
        endpoint = f"{moleculer.host}:{moleculer.port}"
        client = MoleculerClient(Runtime(Memory()), Settings(transporter="nats", endpoints=(endpoint,)))
        await client.connect(5.0)
        await asyncio.sleep(2)
        for event in ("user-created", "user.created"):
            client.events.emit(event, None)
        await asyncio.sleep(1)
        names = [packet.event for packet in peer.events]
        client.abort()
    assert names == ["user.created"], names
