"""How the reference client reaches a server: a function from ``host:port`` to a transport."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from fakebrokers.core.memory import dial


class Wire(Protocol):
    """What the client uses of `asyncio.Transport`."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


Connect: TypeAlias = Callable[[str, Callable[[], asyncio.Protocol]], Awaitable[Wire]]


def sockets(tls: ssl.SSLContext | None = None, server_name: str | None = None) -> Connect:
    """TCP, with TLS if a context is given; the certificate is checked for `server_name`, or the host."""

    async def connect(endpoint: str, make: Callable[[], asyncio.Protocol]) -> Wire:
        host, _, port = endpoint.rpartition(":")
        host = host.strip("[]")
        name = (server_name or host) if tls is not None else None
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(make, host, int(port), ssl=tls, server_hostname=name)
        return transport

    return connect


async def memory(endpoint: str, make: Callable[[], asyncio.Protocol]) -> Wire:
    """Fakes that were made with ``memory=True``."""
    return dial(endpoint, make())
