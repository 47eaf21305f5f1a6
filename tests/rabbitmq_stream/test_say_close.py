"""The server's own Close, as a test brings it about."""

from __future__ import annotations

import asyncio

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.core import virtual
from fakebrokers.core.frames import Frame
from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    Close,
    CloseResponse,
    Open,
    PeerProperties,
    SaslAuthenticate,
    SaslHandshake,
    Tune,
)


class Client(asyncio.Protocol):
    """A client in memory that does the handshake and keeps what it receives."""

    def __init__(self, broker: RabbitMQStream) -> None:
        self.codec = StreamCodec("client")
        self.frames: list[Frame] = []
        self.ended_at: float | None = None
        self.link = broker.connect_memory(self)

    async def log_in(self) -> None:
        await self.send(PeerProperties(1, {}), SaslHandshake(2))
        await self.send(SaslAuthenticate(3, "PLAIN", b"\0guest\0guest"))
        await self.send(Tune(1 << 20, 60), Open(4, "/"))
        self.frames.clear()

    async def send(self, *frames: Frame) -> None:
        for frame in frames:
            self.link.write(self.codec.encode(frame))
            await asyncio.sleep(0.01)

    def data_received(self, data: bytes) -> None:
        self.frames += [frame for frame, _ in self.codec.feed(data)]

    def eof_received(self) -> bool:
        self.ended_at = asyncio.get_running_loop().time()
        return False


def test_it_ends_with_the_answer() -> None:
    async def scene() -> None:
        with RabbitMQStream(memory=True) as broker:
            client = Client(broker)
            await client.log_in()
            broker.say_close("c1", reason="enough")
            await asyncio.sleep(1.0)
            assert client.frames == [Close(1, Code.UNKNOWN_FRAME, "enough")]
            assert client.ended_at is None
            await client.send(CloseResponse(1, Code.OK))
            assert client.ended_at is not None

    virtual.run(scene())


def test_it_ends_without_the_answer_later() -> None:
    async def scene() -> None:
        with RabbitMQStream(memory=True) as broker:
            client = Client(broker)
            await client.log_in()
            begun = asyncio.get_running_loop().time()
            broker.say_close("c1", Code.FRAME_TOO_LARGE, "frame too large")
            await asyncio.sleep(20.0)
            assert client.ended_at is not None
            assert client.ended_at - begun == pytest.approx(10.0, abs=0.01)

    virtual.run(scene())


def test_only_a_connection_that_stands() -> None:
    with RabbitMQStream() as broker, pytest.raises(UsageError, match="c7"):
        broker.say_close("c7")
