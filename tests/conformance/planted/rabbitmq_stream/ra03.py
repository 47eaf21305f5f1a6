"""The bytes at the end of a key are hashed as signed numbers: messages whose key ends in a letter such as
"é" go to another partition of the super stream than those of other clients. Like nodefluent/node-sinek 40.
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.murmur3 import _U32, SEED, _mixed, _rotated, murmur3
from conformance.clients.reference.rabbitmq_stream.super_streams import SuperStreams
from fakebrokers import RabbitMQStream

PARTITIONS = [f"invoices-{number}" for number in range(5)]


def plant() -> None:
    """Install the defect."""

    def signed_hash(self: Any, key: str) -> int:
        data = key.encode()
        whole = len(data) & ~3
        found = SEED
        for at in range(0, whole, 4):
            found ^= _mixed(int.from_bytes(data[at : at + 4], "little"))
            found = _rotated(found, 13) * 5 + 0xE6546B64 & _U32
        tail = 0
        for at in range(len(data) - 1, whole - 1, -1):
            byte = data[at] if data[at] < 128 else data[at] - 256
            tail ^= byte << 8 * (at - whole)
        found ^= _mixed(tail & _U32) ^ len(data)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
            found = (found ^ found >> shift) * factor & _U32
        return found

    SuperStreams.hash = signed_hash  # type: ignore[method-assign]


async def witness() -> None:
    """Each key goes where MurmurHash3 says."""
    names = ["né", "ä", "öl", "Ångström", "東京", "plain"]
    async with RabbitMQStream(memory=True) as broker:
        broker.create_super_stream("invoices", PARTITIONS, [str(number) for number in range(5)])
        client = StreamClient(Runtime(Memory()), [broker.url.partition("//")[2]])
        await client.connect(5)
        found = {name: await client.super_streams.targets("invoices", "hash", name, 5.0) for name in names}
        client.abort()
    wanted = {name: [PARTITIONS[murmur3(name.encode()) % 5]] for name in names}
    assert found == wanted, (found, wanted)
