"""A peer on a bare TCP socket that speaks just enough ZMTP 3.0 to misbehave.

Greeting, NULL handshake and framing: https://rfc.zeromq.org/spec/23/.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from types import TracebackType

GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + b"\0" + bytes(31)

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]


def ready(kind: str) -> bytes:
    """The READY command of a socket of that type."""
    name = b"\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind.encode()
    body = b"\x05READY" + name
    return bytes([4, len(body)]) + body


def frame(part: bytes, more: bool) -> bytes:
    """One part of a message, shorter than 256 bytes."""
    return bytes([int(more), len(part)]) + part


def message(parts: Sequence[bytes]) -> bytes:
    """The frames of a whole message, as bytes."""
    return b"".join(frame(part, at < len(parts) - 1) for at, part in enumerate(parts))


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: str) -> None:
    """Exchange greetings and READY."""
    writer.write(GREETING)
    await reader.readexactly(64)
    writer.write(ready(kind))
    _, size = await reader.readexactly(2)
    await reader.readexactly(size)


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with RST."""
    link: socket.socket = writer.get_extra_info("socket")
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class RawPeer:
    """Listens on loopback; `talk` gets each connection and its number from 1.

    async with RawPeer(talk) as peer:
        await client.connected(endpoints=peer.endpoints)
    """

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._tasks: set[asyncio.Task[None]] = set()
        self.accepted = 0

    @property
    def endpoints(self) -> dict[str, str]:
        """Its address in the three roles."""
        host, port = self._server.sockets[0].getsockname()
        return dict.fromkeys(("receive", "send", "monitor"), f"tcp://{host}:{port}")

    async def __aenter__(self) -> RawPeer:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            with suppress(OSError, EOFError, asyncio.CancelledError):
                await self._talk(reader, writer, self.accepted)
                await reader.read()
        finally:
            writer.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
