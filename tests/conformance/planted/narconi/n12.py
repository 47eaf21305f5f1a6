"""A message of exactly the largest size that the server takes is refused by the client: its limit is one
byte too low. Like icerpc-csharp 4436.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.publisher import BODY_MAX, Done, Publisher
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""
    original = Publisher.publish

    def publish(self: Publisher, metadata: Mapping[str, Any], body: bytes, done: Done) -> None:
        if len(body) >= BODY_MAX:
            raise ClientError("invalid", f"{len(body)} bytes are more than the server takes")
        original(self, metadata, body, done)

    Publisher.publish = publish  # type: ignore[method-assign]


async def witness() -> None:
    """The message is stored."""
    problem = ""
    async with Narconi(memory=True) as broker:
        broker.create_queue("test", "q")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        try:
            await client.publish("q", bytes(65536), {})
        except ClientError as error:
            problem = error.text
        stored = [len(message.payload) for message in broker.messages("test", "q")]
        await client.close()
    assert (problem, stored) == ("", [65536]), (problem, stored)
