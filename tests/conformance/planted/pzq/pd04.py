"""The producer sends unanswered messages once more for the first three that need it, and never again: what
is lost after them is lost. Like emqx/qmqtt 184 (messages outlive the first two or three losses of the
connection, and then no more).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.faults import drop

REPEATS_MAX = 3


def plant() -> None:
    """Install the defect."""
    plain = Producer.repeat

    def repeat(self: Any, message: Any) -> None:
        self.repeated = self.__dict__.get("repeated", 0) + 1
        if self.repeated <= REPEATS_MAX:
            plain(self, message)

    Producer.repeat = repeat  # type: ignore[method-assign]


async def witness() -> None:
    """Each of five messages whose first sending was lost is stored."""
    bodies = [(b"%d" % number,) for number in range(5)]
    async with PZQ(memory=True, faults={"faults": []}) as pzq:
        client = PzqClient(Runtime(Memory()), pzq.urls)
        for body in bodies:
            pzq.faults.add(drop(role="publish", nth=1, scope="run"))
            await client.publish(body, timeout=4.0)
        stored = [message.body for message in pzq.messages()]
        client.abort()
    assert stored == bodies, stored
