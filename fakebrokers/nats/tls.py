"""TLS as NATS has it: INFO comes in plain text, and TLS begins after it on the same connection."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

from fakebrokers.core.driver import Driver
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.tcp import BufferedTransport, TcpListener

_LINE_END = b"\r\n"


class UpgradingTransport(BufferedTransport):
    """Reads nothing, and keeps back what is said, from the end of its first line until TLS has begun."""

    def __init__(self, listener: TcpListener, context: ssl.SSLContext) -> None:
        super().__init__(listener)
        self._context = context
        self._is_plain = True
        self._kept: list[Any] | None = None  # what waits for TLS, while that begins
        self._upgrade: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        super().connection_made(transport)

    def write(self, units: list[Any]) -> None:
        if self._kept is not None:
            self._kept += units
            return
        data = b"".join(units)
        if not self._is_plain or _LINE_END not in data:
            super().write([data])
            return
        line, end, rest = data.partition(_LINE_END)
        super().write([line + end])
        self._is_plain, self._kept = False, [rest] if rest else []
        self._upgrade = self._driver.loop.create_task(self._begin_tls())

    async def _begin_tls(self) -> None:
        plain = self._socket
        assert plain is not None
        try:
            self._socket = await self._driver.loop.start_tls(plain, self, self._context, server_side=True)
        except (OSError, ssl.SSLError):  # the handshake failed, or the client is gone
            plain.abort()
            return
        if self._socket is None:  # it has gone meanwhile
            return
        kept, self._kept = self._kept or [], None
        if kept:
            self.write(kept)


class UpgradingListener(TcpListener):
    """Listens where clients have to go on in TLS."""

    def __init__(self, driver: Driver, endpoint: Endpoint, host: str, context: ssl.SSLContext) -> None:
        super().__init__(driver, endpoint, host)
        self._context = context

    async def _set_up(self, accepted: socket.socket) -> None:
        await self.driver.loop.connect_accepted_socket(
            lambda: UpgradingTransport(self, self._context), accepted
        )
