"""Metadata whose value is 0, false or empty is left out of a publish over a WebSocket. Like
moleculerjs/moleculer 511 and flamejs/flame.js 66 (falsy values are taken for missing ones).
"""

from __future__ import annotations

import json
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.publisher import Publisher
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def encode_metadata(self: Any, metadata: Any) -> bytes:
        return json.dumps(
            {key: value for key, value in metadata.items() if value}, ensure_ascii=False
        ).encode()

    Publisher.encode_metadata = encode_metadata  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """All metadata arrive."""
    async with Narconi(memory=True) as server:
        client = made(server)
        await client.http.ensure("q")
        await client.publish("q", b"x", {"x-msg-x-retries": 0, "x-msg-x-shop": "a"})
        stored = server.messages("test", "q")[0].headers
        await client.close(1)
    assert len(stored) == 2, stored
