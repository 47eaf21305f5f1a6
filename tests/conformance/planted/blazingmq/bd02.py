"""Each kind of control request counts for itself, so that two under way can have one number: an answer ends
the wrong one, or none. Like voryx/Thruway 208 (request ids are counted in one scope too small, and
collide).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.requests import Requests
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.faults import late_answer

ORDERS = "bmq://bmq.test.mem.priority/orders"
BILLS = "bmq://bmq.test.mem.priority/bills"


def plant() -> None:
    """Install the defect."""
    plain = Requests.ask

    async def ask(self: Any, make: Any, timeout: float, late: Any = None) -> Any:
        self.kind = make(0).kind
        return await plain(self, make, timeout, late)

    def next_id(self: Any) -> int:
        numbers = self.link.client.__dict__.setdefault("numbers", Counter())
        numbers[self.kind] += 1
        return int(numbers[self.kind])

    Requests.ask = ask  # type: ignore[method-assign]
    Requests.next_id = next_id  # type: ignore[method-assign]


async def witness() -> None:
    """A queue is opened while another is configured; both work."""
    async with BlazingMQ(memory=True, faults={"faults": []}) as broker:
        client = BlazingClient(Runtime(Memory()), broker.url.removeprefix("tcp://"))
        await client.connect(5.0)
        await client.queues.open("orders", ORDERS, frozenset({"read"}), {}, 5.0)
        broker.faults.add(late_answer("openQueueResponse", 0.5, nth=1, scope="run"))
        await asyncio.gather(
            client.queues.open("bills", BILLS, frozenset({"write"}), {}, 5.0),
            client.queues.configure("orders", {"consumer_priority": 2}, 5.0),
        )
        client.abort()
