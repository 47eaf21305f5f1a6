"""An empty id that the application chose is taken for none: the message goes out under an id of the
client's own. Like node-rdkafka 36 and librdkafka 1357 (an empty key is sent as no key).
"""

from __future__ import annotations

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Answer, Producer
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""
    original = Producer.publish

    async def publish(
        self: Producer, body: Parts, id: bytes | None = None, timeout: float | None = None
    ) -> Answer:
        return await original(self, body, id or None, timeout)

    Producer.publish = publish  # type: ignore[method-assign]


async def witness() -> None:
    """The empty id is on the wire."""
    async with PZQ(memory=True) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)
        answer = await client.publish((b"x",), b"", 5)
        said = [record.frame.id for record in broker.journal.select(kind="Produce")]
        await client.close()
    assert (said, answer.id) == ([b""], b""), (said, answer)
