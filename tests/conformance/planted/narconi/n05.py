"""Queues whose names differ only in capitals share one publishing connection: messages for the second one
land in the first. Like allegro/hermes 446 and moleculer-java 7 (names that are not kept as they are).
"""

from __future__ import annotations

from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, Memory, Runtime
from conformance.clients.reference.narconi.channels import Publishers, Publishing
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    async def publisher(self: Publishers, queue: str) -> Publishing:
        key = queue.lower()
        task = self.by_queue.get(key)
        if task is None or (task.done() and (task.exception() or not task.result().is_usable)):
            tasks = self.runtime.tasks
            task = tasks.spawn(tasks.within(DEFAULT_TIMEOUT_S, self.open(queue)))
            self.by_queue[key] = task
        return await self.runtime.tasks.join(task, definite=True)

    Publishers.publisher = publisher  # type: ignore[method-assign]


async def witness() -> None:
    """Each message is in the queue that was named."""
    async with Narconi(memory=True) as broker:
        for name in ("orders", "Orders"):
            broker.create_queue("test", name)
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        await client.publish("orders", b"small", {})
        await client.publish("Orders", b"large", {})
        found = [
            [message.payload for message in broker.messages("test", name)] for name in ("orders", "Orders")
        ]
        await client.close()
    assert found == [[b"small"], [b"large"]], found
