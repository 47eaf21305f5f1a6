"""An error in place of a confirm counts for the message that was sent last, not for the oldest that waits.
Like nens/asyncio-rpc 3 (answers are given to the wrong one of several questions under way).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.publisher import Publisher
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def refused(self: Any, error: ClientError) -> None:
        self.is_spent = True
        if self.pending:
            self.pending.pop()(error)
        else:
            self._on_error(error)

    Publisher.refused = refused  # type: ignore[method-assign]


async def witness() -> None:
    """Of two messages at once the first is too large for the server: that one is refused."""
    async with Narconi(memory=True, faults={"faults": []}) as narconi:
        narconi.create_queue("gold", "orders")
        settings = Settings(endpoint=narconi.url.partition("//")[2], project="gold")
        client = NarconiClient(Runtime(Memory()), settings)

        async def outcome(body: bytes) -> str:
            try:
                await client.publish("orders", body, {})
            except ClientError as error:
                return error.kind
            return "confirmed"

        found = await asyncio.gather(outcome(bytes(70_000)), outcome(b"tea"))
        client.abort()
    assert found == ["refused", "connection"], found
