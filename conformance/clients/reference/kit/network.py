"""How a reference client reaches a server: over sockets, or in the memory of the fake's process."""

from __future__ import annotations

import asyncio
import os
import platform
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

from fakebrokers.core import memory
from fakebrokers.server import WALL_ON_VIRTUAL_TIME


class Wire(Protocol):
    """What clients use of `asyncio.Transport`."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Network:
    """TCP, with TLS where the options of the session ask for it.

    Args:
        options: Of the op connect; ``tls`` counts here.

    Attributes:
        tls: What a server has to prove; None: plain TCP.
        server_name: What its certificate has to show, if it is not the host.
    """

    is_memory: ClassVar[bool] = False

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        tls = (options or {}).get("tls")
        self.tls = self.tls_context(tls.get("ca_file")) if tls else None
        self.server_name = tls.get("server_name") if tls else None

    async def dial(self, endpoint: str, make: Callable[[], asyncio.Protocol]) -> Wire:
        """A connection to ``host:port``. Raises `OSError`."""
        host, _, port = endpoint.rpartition(":")
        host = host.strip("[]")
        name = (self.server_name or host) if self.tls is not None else None
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(make, host, int(port), ssl=self.tls, server_hostname=name)
        return transport

    def tls_context(self, ca_file: str | None) -> ssl.SSLContext:
        """What a server has to prove."""
        return ssl.create_default_context(cafile=ca_file)

    def wall(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def host_name(self) -> str:
        """What the machine is called."""
        return platform.node() or "localhost"

    def busy_percent(self) -> int:
        """How busy the machine's processors are, 0 to 100."""
        return min(100, round(100 * os.getloadavg()[0] / (os.cpu_count() or 1)))


class Memory(Network):
    """Fakes that were made with ``memory=True``, on the running loop and its virtual time."""

    is_memory = True

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__()

    async def dial(self, endpoint: str, make: Callable[[], asyncio.Protocol]) -> Wire:
        return memory.dial(endpoint, make())

    def wall(self) -> float:
        return WALL_ON_VIRTUAL_TIME + asyncio.get_running_loop().time()

    def host_name(self) -> str:
        return "localhost"  # the same seed gives the same bytes on every machine

    def busy_percent(self) -> int:
        return 0
