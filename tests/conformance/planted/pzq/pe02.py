"""The third part of an answer has to be empty: with header parts in front of the delimiter, which the
protocol allows, the answer is no answer. Like hove-io/loki 219 (one frame is expected at a place where
there may be several).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Answer, Producer
from fakebrokers import PZQ
from fakebrokers.faults import fault
from fakebrokers.pzq.faults import ExtraHeaders


def plant() -> None:
    """Install the defect."""

    def read(self: Any, parts: Any) -> Answer:
        if len(parts) < 3 or parts[2]:
            raise ClientError("protocol", f"expected [id][status][][texts...], got {len(parts)} parts")
        return Answer(parts[0], parts[1], parts[3:])

    Producer.read = read  # type: ignore[method-assign]


async def witness() -> None:
    """A message is stored, and its answer has two headers."""
    async with PZQ(memory=True, faults={"faults": []}) as pzq:
        pzq.faults.add(fault(ExtraHeaders(("h1", "h2")), role="confirm"))
        client = PzqClient(Runtime(Memory()), pzq.urls)
        answer = await client.publish((b"tea",), timeout=10.0)
        client.abort()
    assert answer.status == b"1", answer
