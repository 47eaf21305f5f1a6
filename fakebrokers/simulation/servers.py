"""What listens in a simulation: servers of code under test, and the fakes."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakebrokers.core.tcp import TcpTransport
from fakebrokers.simulation.ends import End
from fakebrokers.simulation.hosts import Door, Process
from fakebrokers.simulation.sockets import SimulatedSocket
from fakebrokers.simulation.transports import SimulatedTransport, converse
from fakebrokers.simulation.turns import TurningLoop

if TYPE_CHECKING:
    from fakebrokers.core.driver import Driver
    from fakebrokers.core.listeners import Endpoint


class SimulatedServer(asyncio.AbstractServer):
    """What `create_server` gives; behaves as `asyncio.Server` does."""

    def __init__(
        self,
        loop: TurningLoop,
        factory: Callable[[], asyncio.BaseProtocol],
        places: list[tuple[str, bool, int]],
        tls: ssl.SSLContext | None,
        timeouts: dict[str, Any],
    ) -> None:
        self._loop = loop
        self._factory = factory
        self._tls = tls
        self._timeouts = timeouts
        self._transports: dict[SimulatedTransport, None] = {}
        self._waiters: list[asyncio.Future[None]] | None = []
        self._forever: asyncio.Future[None] | None = None
        self._serves = False
        process = loop.network.here()
        self._doors: list[Door] = []
        self._sockets: list[SimulatedSocket] = []
        for address, inside, port in places:
            door = Door(process, port, self._accept, inside=inside)
            door.state = "refusing"
            self._doors.append(door)
            self._sockets.append(SimulatedSocket(local=(address, door.port)))

    def __repr__(self) -> str:
        return f"<SimulatedServer {self._sockets}>"

    @property
    def sockets(self) -> tuple[SimulatedSocket, ...]:
        """One for each address; none once it is closed."""
        return tuple(self._sockets)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._serves

    def begin(self) -> None:
        """Let clients in."""
        if self._waiters is None:
            raise RuntimeError(f"server {self!r} is closed")
        self._serves = True
        for door in self._doors:
            door.state = "open"

    async def start_serving(self) -> None:
        self.begin()
        await asyncio.sleep(0)

    async def serve_forever(self) -> None:
        if self._forever is not None:
            raise RuntimeError(f"server {self!r} is already being awaited on serve_forever()")
        self.begin()
        self._forever = self._loop.create_future()
        try:
            await self._forever
        except asyncio.CancelledError:
            self.close()
            await self.wait_closed()
            raise
        finally:
            self._forever = None

    def close(self) -> None:
        self._serves = False
        self._sockets.clear()
        for door in self._doors:
            door.close()
        self._doors.clear()
        if self._forever is not None and not self._forever.done():
            self._forever.cancel()
        if not self._transports:
            self._wake_waiters()

    def close_clients(self) -> None:
        """Close every connection."""
        for each in tuple(self._transports):
            each.close()

    def abort_clients(self) -> None:
        """Cut every connection."""
        for each in tuple(self._transports):
            each.abort()

    async def wait_closed(self) -> None:
        if sys.version_info < (3, 12) and not self._doors:
            return  # it waits for nobody's connections there
        if self._waiters is not None and (self._doors or self._transports):
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def attach(self, transport: SimulatedTransport) -> None:
        """A connection has begun."""
        self._transports[transport] = None

    def detach(self, transport: SimulatedTransport) -> None:
        """A connection has ended."""
        self._transports.pop(transport, None)
        if not self._transports and not self._doors:
            self._wake_waiters()

    def _wake_waiters(self) -> None:
        waiters, self._waiters = self._waiters or [], None
        for each in waiters:
            if not each.done():
                each.set_result(None)

    def _accept(self, end: End) -> None:
        converse(self._loop, end, self._factory(), self._tls, server_side=True, server=self, **self._timeouts)


class _Ordered(dict[TcpTransport, None]):
    """A set that has an order, which repeats."""

    def add(self, transport: TcpTransport) -> None:
        self[transport] = None

    def discard(self, transport: TcpTransport) -> None:
        self.pop(transport, None)


class _Transport(TcpTransport, asyncio.Protocol):
    """A connection to a fake, whose bytes come as they were sent."""

    data_received = TcpTransport.received


class SimulatedListener:
    """A port at which a fake listens; implements `listeners.Listener` and `tcp.Owner`."""

    dials = False

    def __init__(
        self, loop: TurningLoop, process: Process, driver: Driver, endpoint: Endpoint, port: int
    ) -> None:
        self.driver = driver
        self.endpoint = endpoint
        self.port = port
        self.transports = _Ordered()
        self._loop = loop
        self._process = process
        self._door: Door | None = None
        self._ends: dict[str, End] = {}

    @property
    def listening(self) -> bool:
        """Whether clients get in."""
        return self._door is not None and self._door.state == "open"

    def bind(self) -> None:
        """Take the port; any free one for 0."""
        self._door = Door(self._process, self.port, self._accept, inside=False)
        self._door.state = "refusing"
        self.port = self._door.port

    def _accept(self, end: End) -> None:
        host, port = end.remote
        self._ends[f"{host}:{port}"] = end
        converse(self._loop, end, _Transport(self), self.endpoint.tls, server_side=True)

    def _set(self, state: Any) -> None:
        if self._door is not None:
            self._door.state = state

    async def serve(self) -> None:
        """Let clients in."""
        self._set("open")

    def refuse(self, *, after_step: bool = False) -> None:
        """Let nobody in, and keep the port."""
        self._set("refusing")

    def black_hole(self) -> None:
        """Let connects hang."""
        self._set("hole")

    def close(self) -> None:
        """Give the port back, and cut every connection."""
        if self._door is not None:
            self._door.close()
            self._door = None
        for transport in tuple(self.transports):
            transport.drop()

    def client_holds(self, connection: str, address: str) -> bool | None:
        """Whether the client has not closed its end."""
        end = self._ends.get(address)
        return None if end is None else end.peer.is_open
