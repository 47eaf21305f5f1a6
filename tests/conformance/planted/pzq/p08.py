"""The reason of a refusal that is no UTF-8 cannot be shown, and the error in decoding it is all that comes
of the answer: the publish waits on and ends as timed out instead of refused. Like kafka-python 815 and
apify/impit 434 (bytes that are no text break the client).
"""

from __future__ import annotations

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq import producer
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ
from fakebrokers.faults import rewrite


def plant() -> None:
    """Install the defect."""
    receive = producer.Producer.receive

    def strict(part: bytes) -> str:
        return part.decode()

    def new_receive(self: producer.Producer, parts: Parts) -> None:
        try:
            receive(self, parts)
        except UnicodeDecodeError as error:
            self.runtime.callbacks.trouble("decode", ClientError("internal", str(error)))

    producer.text_of = strict
    producer.Producer.receive = new_receive  # type: ignore[method-assign]


async def witness() -> None:
    """The publish is refused."""
    kind = ""
    async with PZQ(memory=True) as broker:
        broker.faults.add(rewrite({"status": b"0", "texts": (b"disk \xff\xfe full",)}, kind="ProduceAck"))
        client = PzqClient(Runtime(Memory()), broker.urls)
        try:
            await client.publish((b"x",), None, 5)
        except ClientError as error:
            kind = error.kind
        await client.close()
    assert kind == "refused", kind
