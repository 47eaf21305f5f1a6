"""The two ways to a server: sockets, and the memory of the fake's process."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from conformance.clients.reference.kit import Memory, Network
from fakebrokers import RabbitMQStream
from fakebrokers.core import virtual
from fakebrokers.server import WALL_ON_VIRTUAL_TIME


class Heard(asyncio.Protocol):
    def __init__(self) -> None:
        self.is_over = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over.set()


def test_in_memory_fakes_are_found_by_their_address() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            heard = Heard()
            wire = await Memory().dial(f"{broker.host}:{broker.port}", lambda: heard)
            await asyncio.sleep(0.1)
            assert len(broker.connections) == 1
            wire.abort()
            await asyncio.wait_for(heard.is_over.wait(), 1.0)
        with pytest.raises(OSError):
            await Memory().dial("127.0.0.1:1", Heard)

    virtual.run(work())


def test_over_sockets() -> None:
    async def work() -> None:
        async with RabbitMQStream() as broker:
            wire = await Network().dial(f"{broker.host}:{broker.port}", Heard)
            await broker.wait_for_async(kind="accepted")
            wire.close()
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            with pytest.raises(OSError):
                await Network().dial(f"127.0.0.1:{nobody.getsockname()[1]}", Heard)

    asyncio.run(work())


def test_the_wall_clock_is_that_of_the_same_world() -> None:
    async def work() -> tuple[float, float]:
        await asyncio.sleep(5.0)
        return Memory().wall(), Network().wall()

    before = time.time()
    memory, network = virtual.run(work())
    assert memory == pytest.approx(WALL_ON_VIRTUAL_TIME + 5.0)
    assert before <= network <= time.time()
