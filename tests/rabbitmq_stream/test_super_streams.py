"""Super streams that a test makes by itself."""

from __future__ import annotations

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.frames import CreateSuperStream, Partitions, PartitionsResponse
from fakebrokers.rabbitmq_stream.refusals import Refused
from tests.rabbitmq_stream.bench import Bench


def test_a_super_stream_comes_and_goes_with_its_partitions(rabbitmq_stream: RabbitMQStream) -> None:
    rabbitmq_stream.create_super_stream("orders", ["orders-0", "orders-1"], ["x", "y"], max_age="1h")
    assert list(rabbitmq_stream.streams) == ["orders-0", "orders-1"]
    rabbitmq_stream.publish("orders-1", b"tea")
    assert [message.body for message in rabbitmq_stream.messages("orders-1")] == [b"tea"]
    rabbitmq_stream.delete_super_stream("orders")
    assert not list(rabbitmq_stream.streams)


def test_one_that_exists_is_refused(rabbitmq_stream: RabbitMQStream) -> None:
    rabbitmq_stream.create_super_stream("orders", ["orders-0"], ["x"])
    with pytest.raises(Refused, match="code 5"):
        rabbitmq_stream.create_super_stream("orders", ["orders-0"], ["x"])


def test_partitions_come_in_the_order_of_their_declaration() -> None:
    declared = ["x-9", "x-10", "x-b", "x-a"]
    bench = Bench()
    client = bench.open()
    client.send(CreateSuperStream(1, "x", tuple(declared), tuple("abcd"), {}))
    client.frames()
    client.send(Partitions(2, "x"))
    assert list(client.only(PartitionsResponse).streams) == declared
