"""A ZeroMQ socket without libzmq, for mutants with a defect in their transport.

It is a DEALER or ROUTER with one peer and speaks just enough ZMTP 3.0: greeting, NULL handshake, framing, as
in https://rfc.zeromq.org/spec/23/.
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from itertools import count

from conformance.clients.reference.pzq.sockets import OnMessage, Parts
from fakebrokers.pzq import memory
from fakebrokers.pzq.memory import MemorySocket, SocketType

_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_MORE, _LONG, _COMMAND = 1, 2, 4
_numbers = count(1)
_READ = 65536
SHORTEST_MS = 1  #: that a new connection takes in memory, where time would stop else


class BareSocket:
    """See the module's text. Connects again when a connection ends; keeps what could not be sent till then.

    Args:
        in_memory: The fake is reached through memory: without greetings, by what comes of its bytes.

    Attributes:
        pause_s: Between two attempts.
        parts: Of the message that is coming in.
    """

    pause_s = 0.1

    def __init__(
        self, endpoint: str, kind: SocketType, on_message: OnMessage, *, in_memory: bool = False
    ) -> None:
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        self.parts: list[bytes] = []
        self._peer = b"\0" + next(_numbers).to_bytes(4, "big")
        self._kind = kind
        self._on_message = on_message
        self._buffer = bytearray()
        self._unsent: list[bytes] = []
        self._writer: asyncio.StreamWriter | None = None
        self._memory: MemorySocket | None = None
        self._running: asyncio.Task[None] | None = None
        if in_memory:
            pause_ms = max(SHORTEST_MS, int(self.pause_s * 1000))
            self._memory = memory.connect(endpoint, kind, on_message, pause_ms, self)
        else:
            self._running = asyncio.get_running_loop().create_task(self._run(host, int(port)))

    async def _run(self, host: str, port: int) -> None:
        while True:
            with suppress(OSError, EOFError):
                reader, writer = await asyncio.open_connection(host, port)
                try:
                    await self._talk(reader, writer)
                finally:
                    self._writer = None
                    writer.close()
            self.lost()
            await asyncio.sleep(self.pause_s)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_GREETING)
        self.greet(await reader.readexactly(len(_GREETING)))
        ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(self._kind)) + self._kind.encode()
        writer.write(bytes([_COMMAND, len(ready)]) + ready)
        self._writer = writer
        unsent, self._unsent = self._unsent, []
        writer.writelines(unsent)
        while data := await reader.read(_READ):
            self.feed(data)

    def greet(self, greeting: bytes) -> None:
        """Check the peer's greeting. Raises `ConnectionError`."""
        if greeting[:1] != b"\xff" or greeting[9:10] != b"\x7f":
            raise ConnectionError("the peer does not speak ZMTP")

    def feed(self, data: bytes) -> None:
        """Take in what one read gave."""
        self._buffer += data
        while self.read_frame():
            pass

    def read_frame(self) -> bool:
        """Take a frame out of the buffer; whether there was a whole one."""
        if not self._buffer:
            return False
        flags = self._buffer[0]
        start = 9 if flags & _LONG else 2
        end = start + int.from_bytes(self._buffer[1:start], "big")
        if len(self._buffer) < max(start, end):
            return False
        part = bytes(self._buffer[start:end])
        del self._buffer[:end]
        if not flags & _COMMAND:
            self.parts.append(part)
            if not flags & _MORE:
                whole, self.parts = self.parts, []
                self.deliver_message(tuple(whole))
        return True

    def forget(self) -> None:
        """Drop what has come in of a frame."""
        self._buffer.clear()

    def lost(self) -> None:
        """The connection has ended: what has come in of a message is nothing."""
        self.forget()
        self.parts.clear()

    def deliver_message(self, parts: Parts) -> None:
        """A message is there."""
        self._on_message((self._peer, *parts) if self._kind == "ROUTER" else parts)

    def send(self, *parts: bytes) -> None:
        """Send a message; it waits for a connection. A ROUTER drops what is for another."""
        if self._kind == "ROUTER":
            if parts[0] != self._peer:
                return
            parts = parts[1:]
        if self._memory is not None:
            leads = (self._memory.routing_id,) if self._kind == "ROUTER" else ()
            self._memory.send(*leads, *parts)
            return
        frames = [
            struct.pack(">BQ", _LONG | (_MORE if left else 0), len(part)) + part
            for left, part in zip(range(len(parts) - 1, -1, -1), parts, strict=True)
        ]
        if self._writer is None:
            self._unsent += frames
        else:
            self._writer.writelines(frames)

    def close(self) -> None:
        """End it."""
        if self._memory is not None:
            self._memory.close()
        if self._running is not None:
            self._running.cancel()
