"""Super streams and filter values, where no scenario looks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from conformance.clients.reference.rabbitmq_stream.subscription import Message
from fakebrokers import RabbitMQStream
from fakebrokers.core import virtual
from fakebrokers.faults import reply
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.operations import create_super_stream

SUPER, PARTITIONS = "invoices", ["invoices-b", "invoices-a"]


async def _ignore(partition: str, message: Message) -> None:
    pass


def _with_client(
    work: Callable[[RabbitMQStream, StreamClient], Awaitable[None]], frame_max: int = 1 << 20
) -> None:
    async def run() -> None:
        async with RabbitMQStream(memory=True) as broker:
            create_super_stream(broker, SUPER, PARTITIONS, ["b", "a"])
            client = StreamClient(
                Runtime(Memory()), [f"{broker.host}:{broker.port}"], Settings(frame_max=frame_max)
            )
            await client.connect(5.0)
            await work(broker, client)
            await client.close(5.0)

    virtual.run(run())


def test_no_partition_is_read_when_one_is_refused() -> None:
    async def work(broker: RabbitMQStream, client: StreamClient) -> None:
        broker.faults.add(reply(code=Code.ACCESS_REFUSED, kind="Subscribe", nth=2, scope="run"))
        with pytest.raises(ClientError, match="16"):
            await client.super_streams.subscribe(SUPER, _ignore, properties={})
        assert not client.consuming.subscriptions
        await broker.wait_for_async(kind="UnsubscribeResponse", timeout=5.0)
        assert not broker.stream_named("invoices-b").subscriptions

    _with_client(work)


def test_a_key_keeps_its_partition_when_another_one_is_added() -> None:
    async def work(broker: RabbitMQStream, client: StreamClient) -> None:
        deadline = client.runtime.clock.deadline(5.0)
        before = [await client.super_streams.hashed(SUPER, str(key), deadline) for key in range(20)]
        broker.delete_stream("invoices-b")
        after = [await client.super_streams.hashed(SUPER, str(key), deadline) for key in range(20)]
        assert before == after
        assert {name for found in before for name in found} == set(PARTITIONS)

    _with_client(work)


def test_filter_values_count_for_the_size_of_frames() -> None:
    async def work(broker: RabbitMQStream, client: StreamClient) -> None:
        bodies = [b"x" * 1000] * 10
        receipts = await client.publishing.publish("invoices-a", bodies, filter_value="v" * 500)
        for receipt in receipts:
            await receipt.confirmed()
        with pytest.raises(ClientError, match="do not fit"):
            await client.publishing.publish("invoices-a", [b"x" * 7900], filter_value="v" * 500)
        assert len(broker.messages("invoices-a")) == 10

    _with_client(work, frame_max=8192)


def test_messages_with_and_without_filter_values_share_a_publisher() -> None:
    async def work(broker: RabbitMQStream, client: StreamClient) -> None:
        await client.publishing.publish("invoices-a", [b"red"], filter_value="red")
        await client.publishing.publish("invoices-a", [b"plain"])
        await client.publishing.flush(5.0)
        versions = [getattr(r.frame, "version", 0) for r in broker.journal.select(kind="Publish")]
        assert sorted(set(versions)) == [1, 2]

    _with_client(work)
