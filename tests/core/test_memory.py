"""Connections through memory, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fakebrokers.core.memory import CLIENT_LIMIT, MemoryLink
from fakebrokers.core.virtual import run
from fakebrokers.errors import UsageError
from fakebrokers.faults import Fault, black_hole, crash, hold, latency, refuse, rst, slice_
from fakebrokers.server import WALL_ON_VIRTUAL_TIME
from tests.toy import Toy

Work = Callable[[Toy], Awaitable[None]]


class Client(asyncio.Protocol):
    """Keeps every piece that comes, and counts when it was told to pause."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ended = ""
        self.paused = 0

    @property
    def heard(self) -> bytes:
        return b"".join(self.pieces)

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.ended = "rst" if error else "fin"

    def pause_writing(self) -> None:
        self.paused += 1

    def resume_writing(self) -> None:
        self.paused -= 1


def on(work: Work, *faults: Fault) -> None:
    async def main() -> None:
        with Toy(memory=True) as toy:
            toy.faults.add(*faults)
            await work(toy)

    run(main())


def join(toy: Toy) -> tuple[Client, MemoryLink]:
    client = Client()
    return client, toy.connect_memory(client)


def test_a_conversation_and_its_end() -> None:
    async def work(toy: Toy) -> None:
        client, link = join(toy)
        link.write(b"hello me\nput a")
        link.write(b" x\nget a\n")
        await asyncio.sleep(0.1)
        assert client.heard == b"welcome\nstored a\nvalue a x\n"
        link.write(b"bye\n")
        await asyncio.sleep(0.1)
        assert client.heard.endswith(b"bye\n")
        assert client.ended == "fin"
        assert link.is_closing()
        link.write(b"put b\n")
        await asyncio.sleep(0.1)
        assert "b" not in toy.broker.values

    on(work)


def test_the_client_ends_it_behind_what_it_wrote() -> None:
    async def work(toy: Toy) -> None:
        client, link = join(toy)
        link.write(b"put a x\n")
        link.close()
        link.close()
        await asyncio.sleep(0.1)
        assert toy.broker.values == {"a": "x"}
        assert (client.ended, toy.connections) == ("fin", [])

    on(work)


def test_reset() -> None:
    async def work(toy: Toy) -> None:
        client, link = join(toy)
        link.write(b"put a\n")
        await asyncio.sleep(0.1)
        assert (client.heard, client.ended) == (b"stored a\n", "rst")

    on(work, rst(role="confirm"))


def test_slices_arrive_as_slices() -> None:
    async def work(toy: Toy) -> None:
        client, link = join(toy)
        link.write(b"put a\n")
        await asyncio.sleep(0.1)
        assert client.pieces == [b"stor", b"ed a", b"\n"]

    on(work, slice_(4, gap_s=0, role="confirm"))


def test_a_client_that_writes_to_a_broker_that_does_not_read() -> None:
    async def work(toy: Toy) -> None:
        client, link = join(toy)
        connection = toy.engine.connections["c1"]
        connection.stop_reading()
        for _ in range(10):
            link.write(b"put a " + b"x" * 40_000 + b"\n")
        assert client.paused == 1
        assert link._backlog > CLIENT_LIMIT
        await asyncio.sleep(0.1)
        assert client.heard == b""
        link.write(b"put b\n")
        toy.call(connection.resume_reading)
        await asyncio.sleep(0.1)
        assert client.heard == b"stored a\n" * 10 + b"stored b\n"
        assert (client.paused, link._backlog) == (0, 0)

    on(work)


def test_a_client_that_does_not_read() -> None:
    async def work(toy: Toy) -> None:
        client, link = join(toy)
        link.write(b"put k " + b"x" * 100_000 + b"\n")
        await asyncio.sleep(0.1)
        link.pause_reading()
        for _ in range(500):
            link.write(b"get k\n")
        await asyncio.sleep(0.1)
        assert client.heard == b"stored k\n"
        assert link._unread < 5_000_000
        link.resume_reading()
        await asyncio.sleep(0.1)
        assert client.heard.count(b"value k") == 500

    on(work)


def test_a_reset_reaches_even_a_client_that_does_not_read() -> None:
    async def work(toy: Toy) -> None:
        client, link = join(toy)
        link.pause_reading()
        link.write(b"put a\n")
        await asyncio.sleep(0.1)
        assert (client.heard, client.ended) == (b"", "rst")

    on(work, rst(role="confirm"))


def test_nobody_is_let_in() -> None:
    async def work(toy: Toy) -> None:
        _, link = join(toy)
        link.write(b"put a\n")
        await asyncio.sleep(0.1)
        with pytest.raises(ConnectionRefusedError):
            join(toy)
        await asyncio.sleep(1.0)
        _, link = join(toy)
        link.write(b"get a\n")
        await asyncio.sleep(0.1)
        with pytest.raises(TimeoutError, match="black hole"):
            join(toy)
        toy.faults.release("hole")
        await asyncio.sleep(0)
        join(toy)

    on(work, refuse(1.0, kind="Put"), black_hole(kind="Get", name="hole"))


def test_crash_and_restart() -> None:
    async def work(toy: Toy) -> None:
        client, link = join(toy)
        link.write(b"put a x\n")
        await asyncio.sleep(0.1)
        assert client.ended == "rst"
        with pytest.raises(ConnectionRefusedError):
            join(toy)
        await asyncio.sleep(0.5)
        client, link = join(toy)
        link.write(b"get a\n")
        await asyncio.sleep(0.1)
        assert client.heard == b"value a\n"

    on(work, crash(role="confirm", restart_s=0.5, keep_state=False))


def test_time_is_virtual_and_the_wall_clock_repeats() -> None:
    async def work(toy: Toy) -> None:
        client, link = join(toy)
        link.write(b"put a\n")
        await asyncio.sleep(2.9)
        assert client.heard == b""
        await asyncio.sleep(0.2)
        assert client.heard == b"stored a\n"
        assert toy.clock.wall(toy.now) == pytest.approx(WALL_ON_VIRTUAL_TIME + 3.1)

    on(work, latency(3.0, role="confirm"))


def test_waiting_needs_the_async_twin() -> None:
    async def work(toy: Toy) -> None:
        _, link = join(toy)
        with pytest.raises(UsageError, match="await wait_for_async"):
            toy.wait_for(role="confirm")
        link.write(b"put a\n")
        waiting = asyncio.create_task(toy.wait_for_async(role="confirm", timeout=60.0))
        (record,) = await waiting
        assert record.keys == ("a",)
        toy.faults.release("h")

    on(work, hold(role="confirm", name="h"))


def test_memory_has_to_be_asked_for() -> None:
    with pytest.raises(UsageError, match="memory=True"):
        Toy().connect_memory(Client())


def test_the_brokers_direction_ends_behind_what_it_said() -> None:
    async def work(toy: Toy) -> None:
        client = Client()
        link = toy.connect_memory(client)
        link.write(b"hello me\n")
        await asyncio.sleep(0.1)
        toy.call(toy.connection("c1").end_output)
        await asyncio.sleep(0.1)
        assert (client.heard, client.ended) == (b"welcome\n", "fin")

    on(work)
