"""A header with a boolean is true whatever it says: every message that is taken over HTTP counts as delivered
again. Like Skyvern-AI/skyvern 7078 and DataDog/datadog-agent 33046 (the text "false" is not empty, thus
true).
"""

from __future__ import annotations

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def flag(self: HttpApi, text: str | None) -> bool | None:
        return None if text is None else bool(text)

    HttpApi.flag = flag  # type: ignore[method-assign]


async def witness() -> None:
    """A message that comes for the first time says so."""
    async with Narconi(memory=True) as broker:
        broker.publish("test", "orders", "x")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        delivery = await client.http.take("orders")
        client.abort()
    assert delivery is not None and delivery.redelivered is False, delivery
