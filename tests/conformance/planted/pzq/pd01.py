"""The producer takes an acknowledgement for the end of all messages that it sent before: their own answers,
when they come later, count as late and are dropped. They are sent once more, stored twice, and end as
unknown. Like agoragames/haigha 101 (after the ack of the second message, the nack of the first is not seen
any more).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.faults import delay


def plant() -> None:
    """Install the defect."""
    plain_layout, plain_find = Producer.layout, Producer.find

    def layout(self: Any, id: bytes, body: Any) -> Any:
        numbers = self.__dict__.setdefault("numbers", {})
        numbers[id] = self.count = self.__dict__.get("count", 0) + 1
        return plain_layout(self, id, body)

    def find(self: Any, answer: Any) -> Any:
        number = self.__dict__.get("numbers", {}).pop(answer.id, 0)
        if number <= self.__dict__.get("answered", 0):
            return None
        self.answered = number
        return plain_find(self, answer)

    Producer.layout = layout  # type: ignore[method-assign]
    Producer.find = find  # type: ignore[method-assign]


async def witness() -> None:
    """Two messages whose answers come in the other order are both stored, once, and both acknowledged."""
    async with PZQ(memory=True, faults={"faults": []}) as pzq:
        pzq.faults.add(delay(1.0, role="confirm", nth=1, scope="run"))
        client = PzqClient(Runtime(Memory()), pzq.urls)
        both = [client.publish((body,), timeout=10.0) for body in (b"one", b"two")]
        answers = await asyncio.gather(*both, return_exceptions=True)
        stored = [message.body for message in pzq.messages()]
        client.abort()
    assert not any(isinstance(answer, BaseException) for answer in answers), answers
    assert sorted(stored) == [(b"one",), (b"two",)], stored
