"""The connections of all fake nodes of one fake that speak TCP: where they listen, how they dial."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.session import Codec, Session
from fakebrokers.core.tcp import TcpDialler
from fakebrokers.errors import UsageError
from fakebrokers.moleculer.serialization import find_serializer
from fakebrokers.moleculer.tcp.carrier import TcpCarrier
from fakebrokers.moleculer.tcp.codec import TcpCodec
from fakebrokers.moleculer.tcp.discovery import Discovery
from fakebrokers.moleculer.tcp.session import IncomingSession, OutgoingSession

if TYPE_CHECKING:
    from fakebrokers.core.driver import Driver
    from fakebrokers.server import FakeServer

#: Seconds between two rounds of gossip.
GOSSIP_S = 2.0


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _incoming(carrier: TcpCarrier, transport: Any) -> tuple[Session, Codec]:
    """For a connection that another node opens."""
    return IncomingSession(lambda: carrier), TcpCodec(carrier.serializer)


def _outgoing(carrier: TcpCarrier, target: str, transport: Any) -> tuple[Session, Codec]:
    """For one that is opened to another node."""
    return OutgoingSession(carrier, target), TcpCodec(carrier.serializer)


class TcpNetwork:
    """See the module's text; on the fake's own thread.

    The first node has the port that the fake was made with; each further one has a port of its own.
    """

    def __init__(
        self, server: FakeServer, namespace: str, gossip_s: float = GOSSIP_S, udp_port: int = 0
    ) -> None:
        self._server = server
        self._namespace = namespace
        self._udp_port = udp_port
        self._discovery: Discovery | None = None
        self._gossip_s = gossip_s
        self._carriers: list[TcpCarrier] = []
        self._diallers: set[TcpDialler] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def first_session(self, transport: Any) -> tuple[Session, Codec]:
        """For connections to the port of the fake."""
        return IncomingSession(lambda: self._carriers[0] if self._carriers else None), TcpCodec()

    def new_carrier(self, serializer: str, driver: Driver | None) -> TcpCarrier:
        """The connections of one more node; it listens from now on."""
        server = self._server
        if driver is None or not server._has_streams:
            raise UsageError("nodes of the TCP transporter need a fake that was started, and not in memory")
        carrier = TcpCarrier(self._dial, find_serializer(serializer), server.broker.timers, self._gossip_s)
        carrier.host = server.host
        if self._carriers:
            listener = server._new_listener(driver, Endpoint(server._wires[0], partial(_incoming, carrier)))
            server.listeners.add(listener)
            carrier.port = listener.port
        else:
            carrier.port = server.listeners[0].port
        self._carriers.append(carrier)
        return carrier

    async def start(self) -> None:
        """Begin to call out where the nodes listen, if that is wanted."""
        if self._udp_port:
            self._discovery = Discovery(self._udp_port, self._namespace, self._places, self._found)
            self._discovery.open()
            await self._discovery.start()

    def announce(self) -> None:
        """A node has joined: say so at once."""
        if self._discovery is not None:
            self._discovery.call()

    def _places(self) -> list[tuple[str, int]]:
        return [(carrier.node.id, carrier.port) for carrier in self._carriers if carrier.is_used]

    def _found(self, id: str, port: int) -> None:
        def act() -> None:
            for carrier in self._carriers:
                if carrier.is_used:
                    carrier.found(id, self._server.host, port, self._server.engine.now)

        self._server.call(act)

    def _dial(
        self, carrier: TcpCarrier, target: str, host: str, port: int, refused: Callable[[], None]
    ) -> None:
        driver = self._server._driver
        if driver is None:
            return
        endpoint = Endpoint(self._server._wires[0], partial(_outgoing, carrier, target))
        dialler = TcpDialler(driver, endpoint)
        self._diallers.add(dialler)
        # a node may name an address of a network; a fake on loopback reaches nobody but this machine
        reachable = self._server.host if _is_loopback(self._server.host) else host
        task = driver.loop.create_task(self._connect(dialler, reachable, port, refused))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, dialler: TcpDialler, host: str, port: int, refused: Callable[[], None]) -> None:
        try:
            await dialler.dial(host, port)
        except (OSError, TimeoutError):
            self._diallers.discard(dialler)
            self._server.call(refused)

    def close(self) -> None:
        """Cut all connections that were opened."""
        if self._discovery is not None:
            self._discovery.close()
        for task in tuple(self._tasks):
            task.cancel()
        for dialler in self._diallers:
            dialler.close()
        self._diallers.clear()
        self._carriers.clear()
