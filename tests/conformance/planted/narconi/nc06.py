"""The frame of a message of exactly 65536 bytes, the most that the server takes, has the length in 16 bits,
where it is 0. Like mateusvicente100/bird-socket-client 24 and eclipse-vertx/vert.x 260 (the length of a
WebSocket frame is written wrong from 2^16 on).
"""

from __future__ import annotations

from random import Random
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi import socket
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.narconi.websocket import xor


def plant() -> None:
    """Install the defect."""
    whole: Any = socket.encode

    def encode(opcode: int, payload: bytes, random: Random) -> bytes:
        if len(payload) != 65536:
            return bytes(whole(opcode, payload, random))
        mask = random.randbytes(4)
        head = bytes((0x80 | opcode, 0x80 | 126)) + (len(payload) & 0xFFFF).to_bytes(2, "big")
        return head + mask + xor(payload, mask)

    socket.encode = encode  # type: ignore[assignment]


async def witness() -> None:
    """A message of the largest size is published."""
    async with Narconi(memory=True) as broker:
        broker.create_queue("test", "q")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        await client.publish("q", bytes(65536), {})
        sizes = [len(message.payload) for message in broker.messages("test", "q")]
        client.abort()
    assert sizes == [65536], sizes
