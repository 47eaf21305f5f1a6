"""The length of a publisher's reference is counted in characters: one of 200 umlauts has 400 bytes, and is
sent all the same instead of being refused. Like karafka-rdkafka 468 (size and bytesize of a text taken for
each other).
"""

from __future__ import annotations

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from fakebrokers import RabbitMQStream

CHARACTERS_MAX = 255


def plant() -> None:
    """Install the defect."""

    def publisher(self: Publishing, stream: str, name: str | None = None) -> Publisher:
        if name is not None and len(name) > CHARACTERS_MAX:
            raise ClientError("invalid", f"a reference has at most {CHARACTERS_MAX} bytes")
        if (stream, name) not in self.publishers:
            self.publishers[stream, name] = self.runtime.part(Publisher)(stream, name, self.settings)
        return self.publishers[stream, name]

    Publishing.publisher = publisher  # type: ignore[method-assign]


async def witness() -> None:
    """The name is refused, and nothing is sent."""
    kind = ""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect()
        try:
            await client.publishing.publish(
                "s", [b"x"], name="\N{LATIN SMALL LETTER A WITH DIAERESIS}" * 200, timeout=5
            )
        except ClientError as error:
            kind = error.kind
        sent = len(broker.journal.select(kind="DeclarePublisher"))
        await client.close()
    assert (kind, sent) == ("invalid", 0), (kind, sent)
