"""A payload of exactly 65536 bytes is taken for one whose length fits into two bytes: the largest message
that the server allows cannot be published, and leaves a message without its body behind on the connection.
Like microsoft/playwright 41143 and dandeliondeathray/DandelionWebSockets.jl 13 (off by one at a length's
border).
"""

from __future__ import annotations

from random import Random
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi import socket
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.publisher import BODY_MAX
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.narconi.websocket import xor


def plant() -> None:
    """Install the defect."""

    def encode(opcode: int, payload: bytes, random: Random) -> bytes:
        size = len(payload)
        if size < 126:
            head = bytes((0x80 | opcode, 0x80 | size))
        elif size <= 65536:
            head = bytes((0x80 | opcode, 0x80 | 126)) + size.to_bytes(2, "big")
        else:
            head = bytes((0x80 | opcode, 0x80 | 127)) + size.to_bytes(8, "big")
        mask = random.randbytes(4)
        return head + mask + xor(payload, mask)

    socket.encode = encode  # type: ignore[attr-defined]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """The largest message is stored as it is."""
    body = bytes(BODY_MAX)
    async with Narconi(memory=True) as server:
        client = made(server)
        await client.http.ensure("q")
        try:
            await client.publish("q", body, {})
        except OverflowError as error:
            raise AssertionError(str(error)) from None
        stored = [message.payload for message in server.messages("test", "q")]
        client.abort()
    assert stored == [body], [len(each) for each in stored]
