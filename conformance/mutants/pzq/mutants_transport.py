"""A consumer with a transport of its own, with one defect. It speaks just enough ZMTP 3.0."""

from __future__ import annotations

import asyncio
import struct

from conformance.mutants.pzq.consumer import Consumer
from conformance.mutants.pzq.network import Network, OnMessage, Sockets
from conformance.mutants.registry import mutant
from fakebrokers.pzq.memory import SocketType

_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER"
_MORE, _LONG, _COMMAND = 1, 2, 4


class BareRouter:
    """A ROUTER with one peer; it comes back when the connection ends."""

    def __init__(self, endpoint: str, on_message: OnMessage) -> None:
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        self._on_message = on_message
        self._writer: asyncio.StreamWriter | None = None
        self._running = asyncio.get_running_loop().create_task(self._run(host, int(port)))

    async def _run(self, host: str, port: int) -> None:
        while True:
            parts: list[bytes] = []
            try:
                await self._talk(host, port, parts)
            except (OSError, EOFError):
                if parts:
                    self._on_message((b"\0peer", *parts))  # the defect: the rest never came
                await asyncio.sleep(0.1)

    async def _talk(self, host: str, port: int, parts: list[bytes]) -> None:
        reader, self._writer = await asyncio.open_connection(host, port)
        self._writer.write(_GREETING)
        await reader.readexactly(64)
        self._writer.write(bytes([_COMMAND, len(_READY)]) + _READY)
        while True:
            flags = (await reader.readexactly(1))[0]
            size = await reader.readexactly(8 if flags & _LONG else 1)
            part = await reader.readexactly(int.from_bytes(size, "big"))
            if flags & _COMMAND:
                continue
            parts.append(part)
            if not flags & _MORE:
                self._on_message((b"\0peer", *parts))
                parts.clear()

    def send(self, *parts: bytes) -> None:
        if self._writer is None:
            return
        for left, part in zip(range(len(parts) - 2, -1, -1), parts[1:], strict=True):
            self._writer.write(struct.pack(">BQ", _LONG | (_MORE if left else 0), len(part)) + part)

    def close(self) -> None:
        self._running.cancel()
        if self._writer is not None:
            self._writer.close()


class _BareSockets(Sockets):
    def connect(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> BareRouter:
        return BareRouter(endpoint, on_message)


@mutant("half-messages-count", breaks=["P5"], aims=["PZQ-3.07"])
class HalfMessagesCount(Consumer):
    """Takes the parts of a message that have come for the whole when the connection ends."""

    def __init__(self, network: Network, endpoint: str, *args: object, **options: object) -> None:
        bare = _BareSockets() if isinstance(network, Sockets) else network
        super().__init__(bare, endpoint, *args, **options)  # type: ignore[arg-type]
