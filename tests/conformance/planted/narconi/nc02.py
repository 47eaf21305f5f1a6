"""The length of the metadata is counted in characters and cuts its bytes: with a character outside of ASCII
the server gets half a JSON object. Like ytechie/eventhubs-js 10 (the content length of text is its number of
characters, and multibyte messages are cut).
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
        text = json.dumps(metadata, ensure_ascii=False)
        return text.encode()[: len(text)]

    Publisher.encode_metadata = encode_metadata  # type: ignore[method-assign]


async def witness() -> None:
    """Metadata with umlauts arrive."""
    async with Narconi(memory=True) as broker:
        broker.create_queue("test", "q")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        await client.publish("q", b"one", {"x-msg-x-city": "Zürich"})
        stored = [dict(message.headers) for message in broker.messages("test", "q")]
        client.abort()
    assert stored == [{"x-msg-x-city": "Zürich"}], stored
