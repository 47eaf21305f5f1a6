"""Only the status 0 is a refusal, and any other one is success: the NO of an older daemon counts as stored.
Like vectordotdev/vector 18923 (a negative acknowledgement ends like a positive one).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.pzq.faults import refuse_message


def plant() -> None:
    """Install the defect."""

    def stored(self: Any, status: bytes) -> bool:
        return status != b"0"

    Producer.stored = stored  # type: ignore[method-assign]


async def witness() -> None:
    """A daemon that says NO has not stored the message."""
    async with PZQ(memory=True, profile="seed-words", faults={"faults": []}) as pzq:
        pzq.faults.add(refuse_message(nth=1, scope="run"))
        client = PzqClient(Runtime(Memory()), pzq.urls)
        found = "stored"
        try:
            await client.publish((b"tea",), timeout=10.0)
        except ClientError as error:
            found = error.kind
        left = pzq.messages()
        client.abort()
    assert not left, left
    assert found == "refused", found
