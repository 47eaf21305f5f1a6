"""Steps of the scenarios about super streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.clients.adapter.messages import body_bytes
from conformance.clients.adapter.result import Result
from conformance.suite import Client
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.superstreams import Binding
from scenarios.rabbitmq_stream._deliveries import numbered, write

SUPER = "invoices"
#: In the order of the server.
WEST, EAST, NORTH = PARTITIONS = ("invoices-west", "invoices-east", "invoices-north")
KEYS = {"amer": WEST, "apac": EAST, "emea": NORTH}


def super_stream(broker: RabbitMQStream, keys: Mapping[str, str] = KEYS) -> None:
    """There is the super stream, with these partitions by their keys."""
    broker.create_super_stream(SUPER, list(keys.values()), list(keys))


def bind(broker: RabbitMQStream, key: str, partition: str) -> None:
    """Let a key lead to one more partition."""
    order = PARTITIONS.index(partition)
    broker.call(lambda: broker.broker.super_streams["/", SUPER].bind(Binding(partition, key, order)))


async def publish(client: Client, body: bytes, key: str, by: str = "key", **more: Any) -> Result:
    """Publish to the super stream."""
    return await client.publish(SUPER, body, routing={"by": by, "key": key}, **more)


def places(broker: RabbitMQStream, body: bytes) -> list[str]:
    """The partitions that store a message with this body, each as often as it does."""
    there = [name for name in PARTITIONS if name in broker.streams]
    return [name for name in there for message in broker.messages(name) if message.body.endswith(body)]


def fill(broker: RabbitMQStream, client: Client, partition: str, first: int, count: int) -> list[bytes]:
    """Append messages to a partition, which name it and their number; two in each chunk."""
    bodies = numbered(first, count, partition)
    for at in range(0, count, 2):
        write(broker, client, bodies[at : at + 2], partition)
    return bodies


def by_partition(
    client: Client, sub: str = "c1", partitions: Sequence[str] = PARTITIONS
) -> dict[str, list[tuple[int, bytes]]]:
    """What was delivered of each partition: offsets and bodies, in the order in which they came."""
    found: dict[str, list[tuple[int, bytes]]] = {name: [] for name in partitions}
    for message in client.messages(sub):
        body = body_bytes(message.body)
        found[body.decode().rpartition(" ")[0]].append((int(message.position), body))
    return found
