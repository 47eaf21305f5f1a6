"""An onlooker sees what clients are handed and what they write, in memory and over TCP."""

from __future__ import annotations

import asyncio

import pytest

from conformance.clients.reference.kit import Memory, Network, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from fakebrokers import NATS, RabbitMQStream
from fakebrokers.core.onlooking import watch_wire
from fakebrokers.faults import slice_, truncate
from tests.eventually import PATIENCE_S
from tests.onlooker import Onlooker


@pytest.mark.parametrize("in_memory", [True, False])
def test_both_ways_and_both_ends(in_memory: bool) -> None:
    async def work() -> None:
        seen = Onlooker()
        broker = RabbitMQStream(memory=in_memory)
        watch_wire(broker, seen)
        async with broker:
            network = Memory({}) if in_memory else Network({})
            client = StreamClient(Runtime(network), [f"{broker.host}:{broker.port}"])
            await client.connect(PATIENCE_S)
            await client.create("orders", timeout=PATIENCE_S)
            await client.close(PATIENCE_S)
        assert seen.rows[0] == ("accepted", "c1")
        assert b"orders" in b"".join(seen.of("written"))
        assert b"advertised_host" in b"".join(seen.of("handed over"))
        assert seen.of("ended")[0] == "broker", "it hangs up behind the answer to Close"

    asyncio.run(work())


def test_a_broker_that_reads_no_more_says_so() -> None:
    async def work() -> None:
        seen = Onlooker()
        broker = RabbitMQStream()
        watch_wire(broker, seen)
        async with broker:
            client = StreamClient(Runtime(Network({})), [f"{broker.host}:{broker.port}"])
            await client.connect(PATIENCE_S)
            assert seen.of("reads") == []
            broker.kill("c1", "half-open")
            assert seen.of("reads") == [False]
            client.abort()

    asyncio.run(work())


@pytest.mark.parametrize("in_memory", [True, False])
def test_what_a_fault_has_cut_is_seen_as_it_was_handed_over(in_memory: bool) -> None:
    async def work() -> None:
        seen = Onlooker()
        broker = RabbitMQStream(memory=in_memory)
        watch_wire(broker, seen)
        async with broker:
            broker.faults.add(truncate(keep=6, kind="PeerPropertiesResponse"))
            network = Memory({}) if in_memory else Network({})
            client = StreamClient(Runtime(network), [f"{broker.host}:{broker.port}"])
            try:
                await client.connect(0.3)
            except Exception:
                client.abort()
        assert len(b"".join(seen.of("handed over"))) == 6

    asyncio.run(work())


def test_what_a_server_says_first_is_seen_also_in_pieces() -> None:
    async def work() -> None:
        seen = Onlooker()
        broker = NATS()
        broker.faults.add(slice_(up_to=3))
        watch_wire(broker, seen)
        async with broker:
            reader, writer = await asyncio.open_connection(broker.host, broker.port)
            said = await asyncio.wait_for(reader.readline(), PATIENCE_S)
            writer.close()
        assert b"".join(seen.of("handed over")) == said
        assert seen.rows[0] == ("accepted", "c1")

    asyncio.run(work())
