"""Ids of messages are looked up as text: bytes that are no UTF-8 all become the same character, so different
ids are one. Like Blizzard/node-rdkafka 208 and mage-ai/mage-ai 5853 (binary keys are decoded as UTF-8, and
come out wrong or not at all).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ


def text(id: bytes) -> str:
    """An id as the planted client has it."""
    return id.decode(errors="replace")


class ByText(dict[Any, Any]):
    """Keys are texts."""

    def __contains__(self, id: Any) -> bool:
        return super().__contains__(text(id))

    def __setitem__(self, id: Any, value: Any) -> None:
        super().__setitem__(text(id), value)

    def get(self, id: Any, default: Any = None) -> Any:
        """See `dict.get`."""
        return super().get(text(id), default)

    def pop(self, id: Any, default: Any = None) -> Any:
        """See `dict.pop`."""
        return super().pop(text(id), default)


def plant() -> None:
    """Install the defect."""
    made = Producer.__init__

    def init(self: Any, *args: Any) -> None:
        made(self, *args)
        self.pending = ByText()

    Producer.__init__ = init  # type: ignore[method-assign]


async def witness() -> None:
    """Two messages with ids of other bytes are under way at once."""
    async with PZQ(memory=True) as pzq:
        client = PzqClient(Runtime(Memory()), pzq.urls)
        both = [client.publish((id,), id, timeout=5.0) for id in (b"\x80\x01", b"\x81\x01")]
        answers = await asyncio.gather(*both)
        client.abort()
    assert [answer.id for answer in answers] == [b"\x80\x01", b"\x81\x01"], answers
