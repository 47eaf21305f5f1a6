"""The proxy: its public class, and the connections that it opens to the server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any
from weakref import WeakSet

from fakebrokers.core.driver import Driver
from fakebrokers.core.engine import Clock
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.session import Codec, Session
from fakebrokers.core.wire import Wire
from fakebrokers.errors import UsageError
from fakebrokers.protocol import Protocol
from fakebrokers.proxy.frames import FRAMES
from fakebrokers.proxy.session import NoBroker, ProxyCodec, ProxySession
from fakebrokers.proxy.upstream import UpstreamSocket
from fakebrokers.server import FakeServer

WIRE = Wire("bytes", FRAMES)
#: Not registered: nobody asks for a proxy by the name of a protocol.
PROTOCOL = Protocol(
    name="proxy",
    about="bytes between a client and a server",
    server="fakebrokers.proxy.server:Proxy",
    wires=(WIRE,),
)


class Proxy(FakeServer):
    """Passes bytes on between clients and a server, but for what the faults do to them.

        proxy = Proxy("127.0.0.1:5552")
        proxy = Proxy(broker.urls)

    ``in`` is client to server (kind ``ClientBytes``), ``out`` server to client (kind ``ServerBytes``).
    Effects that need no frames of a protocol work as in a fake.

    Args:
        upstream: The server: ``host:port``, with or without a scheme in front. Or several by name: each gets
            an address of its own (`urls`), from `port` on; the journal tells which one a connection is for
            (``upstream``).
        connect_timeout: Seconds that the server has to accept.
        options: Those of `FakeServer`. What passes may hold credentials, which the proxy cannot tell from
            the rest: with ``body_limit=0`` its journal keeps sizes and no bytes.
    """

    protocol = PROTOCOL

    def __init__(
        self, upstream: str | Mapping[str, str], *, connect_timeout: float = 10.0, **options: Any
    ) -> None:
        self._upstream = {"": upstream} if isinstance(upstream, str) else dict(upstream)
        for address in self._upstream.values():
            _split(address)
        self._connect_timeout = connect_timeout
        #: Seconds by which an orderly end comes late: the client's to the server, the server's to the client.
        self.linger = {"in": 0.0, "out": 0.0}
        self._dialling: set[asyncio.Task[None]] = set()
        self._upstreams: WeakSet[UpstreamSocket] = WeakSet()
        super().__init__(**options)

    @property
    def scheme(self) -> str:
        return "tcp"

    @property
    def address(self) -> str:
        """The address for clients: ``host:port``."""
        return self.url.partition("//")[2]

    @property
    def urls(self) -> dict[str, str]:
        """The addresses for clients, by the name of the server, if there are several."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        by_name = zip(self._upstream, self.listeners, strict=False)
        return {name: f"{self.scheme}://{host}:{listener.port}" for name, listener in by_name if name}

    @property
    def where(self) -> str | dict[str, str]:
        return self.urls or super().where

    def make_broker(self, clock: Clock) -> NoBroker:
        return NoBroker()

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(WIRE, partial(self._new_session, name), self._wanted_port and self._wanted_port + number)
            for number, name in enumerate(self._upstream)
        ]

    def _new_session(self, name: str, _: Any) -> tuple[Session, Codec]:
        driver = self._driver
        assert driver is not None

        def dial(session: ProxySession) -> None:
            if name:
                self.journal.state(driver.loop.time(), session.link.name, "upstream", name)
            task = driver.loop.create_task(self._connect(driver, session, _split(self._upstream[name])))
            self._dialling.add(task)
            task.add_done_callback(self._dialled)

        return ProxySession(dial, lambda: self.linger["out"], name), ProxyCodec()

    async def _connect(self, driver: Driver, session: ProxySession, address: tuple[str, int]) -> None:

        def make() -> UpstreamSocket:
            upstream = UpstreamSocket(driver, session, lambda: self.linger["in"])
            self._upstreams.add(upstream)
            return upstream

        try:
            await asyncio.wait_for(driver.loop.create_connection(make, *address), self._connect_timeout)
        except (OSError, UnicodeError) as error:  # the latter for a name that can be none
            link = session.link
            self.journal.state(driver.loop.time(), link.name, "no server", str(error))
            connection = self.engine.connections.get(link.name)
            if connection is not None:  # the client still waits
                driver.engine.act(connection, driver.loop.time(), session.failed)
                driver.finish_step()

    def _dialled(self, task: asyncio.Task[None]) -> None:
        self._dialling.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.engine.keep_error(error, "while it connected to the server")

    def closed(self) -> None:
        for task in tuple(self._dialling):
            task.cancel()
        for upstream in tuple(self._upstreams):
            upstream.drop()


def _split(address: str) -> tuple[str, int]:
    """Host and port. `UsageError` if it is not an address."""
    host, _, port = address.rpartition("//")[2].rstrip("/").rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"expected the server's address as host:port, got {address!r}")
    return host.strip("[]"), int(port)
