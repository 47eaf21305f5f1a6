"""The proxy's front door."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakSet

from fakebrokers.engine import Clock
from fakebrokers.errors import UsageError
from fakebrokers.listener import Driver, TcpListener
from fakebrokers.proxy.frames import FRAMES
from fakebrokers.proxy.session import NoBroker, ProxyCodec, ProxySession
from fakebrokers.proxy.upstream import UpstreamSocket
from fakebrokers.server import FakeServer
from fakebrokers.session import Codec, Session


class Proxy(FakeServer):
    """Passes bytes on between clients and a server, but for what the faults do to them.

        proxy = Proxy("127.0.0.1:5552")

    ``in`` is client to server (kind ``ClientBytes``), ``out`` server to client (kind ``ServerBytes``).
    Effects that need no frames of a protocol work as in a fake.

    Args:
        upstream: The server: ``host:port``, with or without a scheme in front.
        connect_timeout: Seconds that the server has to accept.
        options: Those of `FakeServer`.
    """

    protocol = "proxy"
    scheme = "tcp"
    default_port = 0
    frames = FRAMES

    def __init__(self, upstream: str, *, connect_timeout: float = 10.0, **options: Any) -> None:
        self.upstream = upstream
        _split(upstream)
        self._connect_timeout = connect_timeout
        #: Seconds by which an orderly end comes late: the client's to the server, the server's to the client.
        self.linger = {"in": 0.0, "out": 0.0}
        self._dialling: set[asyncio.Task[None]] = set()
        self._upstreams: WeakSet[UpstreamSocket] = WeakSet()
        super().__init__(**options)

    @property
    def address(self) -> str:
        """Where clients connect: ``host:port``."""
        return self.url.partition("//")[2]

    def make_broker(self, clock: Clock) -> NoBroker:
        return NoBroker()

    def make_listeners(self, driver: Driver) -> list[TcpListener]:
        return [TcpListener(driver, lambda _: self._welcome(driver), self.host, self._wanted_port)]

    def _welcome(self, driver: Driver) -> tuple[Session, Codec]:
        def dial(session: ProxySession) -> None:
            task = driver.loop.create_task(self._connect(driver, session))
            self._dialling.add(task)
            task.add_done_callback(self._dialling.discard)

        return ProxySession(dial, lambda: self.linger["out"]), ProxyCodec()

    async def _connect(self, driver: Driver, session: ProxySession) -> None:
        host, port = _split(self.upstream)

        def make() -> UpstreamSocket:
            upstream = UpstreamSocket(driver, session, lambda: self.linger["in"])
            self._upstreams.add(upstream)
            return upstream

        try:
            await asyncio.wait_for(driver.loop.create_connection(make, host, port), self._connect_timeout)
        except OSError as error:
            link = session.link
            self.journal.state(driver.loop.time(), link.name, "no server", str(error))
            driver.engine.act(self.engine.connections[link.name], driver.loop.time(), session.failed)
            driver.settle()

    def _close(self) -> None:
        for task in tuple(self._dialling):
            task.cancel()
        super()._close()
        for upstream in tuple(self._upstreams):
            upstream.drop()


def _split(address: str) -> tuple[str, int]:
    """Host and port. `UsageError` if it is not an address."""
    host, _, port = address.rpartition("//")[2].rstrip("/").rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"expected the server's address as host:port, got {address!r}")
    return host.strip("[]"), int(port)
