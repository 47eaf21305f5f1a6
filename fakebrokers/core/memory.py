"""Connections through memory, for cores that run on one loop without sockets (and on virtual time).

Fakes in memory have addresses all the same, so that clients find the node that a broker names: see `dial`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from fakebrokers.core.connection import Connection
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.session import HangUp

if TYPE_CHECKING:
    from fakebrokers.core.driver import Driver

#: Bytes under way to a broker that does not read from which the client is told to pause.
CLIENT_LIMIT = 256 * 1024
#: Bytes under way to a client that does not read from which the broker is told to pause.
BROKER_LIMIT = 4 * 1024 * 1024

_endpoints: dict[str, MemoryListener] = {}
_ports = itertools.count(1)


def count_from_the_first() -> None:
    """The next fake has the first port again, so that equal runs have equal frames; not while one listens."""
    global _ports  # noqa: PLW0603 - one counter for all fakes of the process
    if not _endpoints:
        _ports = itertools.count(1)


def dial(address: str, client: asyncio.Protocol) -> MemoryLink:
    """Connect a client to the fake with that address (``host:port``).

    Raises:
        ConnectionRefusedError: There is none, or it lets nobody in.
        TimeoutError: Connects hang there at present.
    """
    listener = _endpoints.get(address)
    if listener is None:
        raise ConnectionRefusedError(f"no fake in memory at {address}")
    return listener.connect(client)


class MemoryListener:
    """An address in memory; implements `listeners.Listener`."""

    def __init__(self, driver: Driver, endpoint: Endpoint, host: str) -> None:
        self.port = 0
        self._driver = driver
        self._endpoint = endpoint
        self._host = host
        self._state: Literal["open", "refusing", "hole"] = "refusing"
        self._links: dict[str, MemoryLink] = {}

    @property
    def _address(self) -> str:
        return f"{self._host}:{self.port}"

    def bind(self) -> None:
        """Be found under a port of its own."""
        self.port = next(_ports)
        _endpoints[self._address] = self

    async def serve(self) -> None:
        """Let clients in."""
        self._state = "open"

    def refuse(self, *, after_step: bool = False) -> None:
        """Let nobody in."""
        self._state = "refusing"

    def black_hole(self) -> None:
        """Let connects time out."""
        self._state = "hole"

    def close(self) -> None:
        """Be found no more. The connections that are open end with their clients."""
        _endpoints.pop(self._address, None)

    def connect(self, client: asyncio.Protocol) -> MemoryLink:
        """A client connects; errors as `dial`."""
        if self._state == "hole":
            raise TimeoutError("a connect hangs while the fake is a black hole")
        if self._state == "refusing":
            raise ConnectionRefusedError("the fake accepts no connection")
        link = MemoryLink(self._driver, self._endpoint, client)
        self._links[link.name] = link
        return link

    def client_holds(self, connection: str, address: str) -> bool | None:
        """Whether the client has not closed its end."""
        link = self._links.get(connection)
        return None if link is None else not link.is_closing()


class MemoryLink:
    """Both ends of a connection without sockets.

    The broker's end implements `send_path.Transport`. The client's end offers what client code
    uses of `asyncio.Transport` (`write`, `close`, `abort`, `is_closing`, `pause_reading`,
    `resume_reading`) and calls an `asyncio.Protocol`. Each hop takes one turn of the loop.
    """

    def __init__(
        self,
        driver: Driver,
        endpoint: Endpoint,
        client: asyncio.Protocol,
    ) -> None:
        self._driver = driver
        self._engine = driver.engine
        self._loop = driver.loop
        self._client = client
        self._client_open = True
        self._broker_reads = True
        self._client_reads = True
        self._to_broker: deque[bytes] = deque()
        self._to_client: deque[Callable[[], None]] = deque()
        self._backlog = 0  #: bytes to the broker
        self._unread = 0  #: bytes to the client
        self._paused_client = False
        self._paused_broker = False
        self._connection: Connection | None = None
        session, codec = endpoint.new_session(self)
        now = self._loop.time()
        self._engine.now = now
        end = _BrokerEnd(self)
        self._connection = self._engine.accept(endpoint.wire, session, codec, end, now, "memory")
        self.name = self._connection.name
        if driver.watcher is not None:
            driver.watcher.accepted(self.name)
        self._driver.finish_step()

    # the client's end

    def write(self, data: bytes) -> None:
        """Client to broker."""
        if self._client_open:
            if self._driver.watcher is not None:
                self._driver.watcher.written(self.name, data)
            self._to_broker.append(bytes(data))
            self._backlog += len(data)
            self._loop.call_soon(self._arrive)
            if self._backlog > CLIENT_LIMIT and not self._paused_client:
                self._paused_client = True
                self._client.pause_writing()

    def close(self) -> None:
        """The client ends the connection."""
        if self._client_open:
            if self._driver.watcher is not None:
                self._driver.watcher.ended(self.name, "client", "")
            self._client_open = False
            self._loop.call_soon(self._gone, "closed by client")
            self._loop.call_soon(self._client.connection_lost, None)

    abort = close

    def pause_reading(self) -> None:
        """The client does not read."""
        self._client_reads = False

    def resume_reading(self) -> None:
        """The client reads on."""
        self._client_reads = True
        self._loop.call_soon(self._deliver)

    def is_closing(self) -> bool:
        """Whether the connection has ended, on either side."""
        return not self._client_open

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Nothing is known of a connection through memory."""
        return default

    # to the broker

    def _arrive(self) -> None:
        if self._broker_reads and self._to_broker and self._connection is not None:
            data = self._to_broker.popleft()
            self._backlog -= len(data)
            self._engine.receive(self._connection, data, self._loop.time())
            self._driver.finish_step()
        if self._paused_client and self._backlog <= CLIENT_LIMIT // 2 and self._client_open:
            self._paused_client = False
            self._client.resume_writing()

    def _gone(self, how: str) -> None:
        while self._to_broker and self._connection is not None and self._still_reads():
            self._engine.receive(self._connection, self._to_broker.popleft(), self._loop.time())
            self._driver.finish_step()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._engine.lost(connection, self._loop.time(), how)
            self._driver.finish_step()

    def _still_reads(self) -> bool:
        return self._broker_reads or (self._connection is not None and self._connection.between_turns)

    def _set_broker_reads(self, reads: bool) -> None:
        self._broker_reads = reads
        if reads:
            for _ in self._to_broker:
                self._loop.call_soon(self._arrive)

    # to the client

    def _send(self, data: bytes) -> None:
        self._unread += len(data)
        self._to_client.append(lambda: self._hand_over(data))
        self._loop.call_soon(self._deliver)
        if self._unread > BROKER_LIMIT and not self._paused_broker and self._connection is not None:
            self._paused_broker = True
            self._engine.set_writable(self._connection, False, self._loop.time())

    def _hang_up(self, how: HangUp) -> None:
        if how is HangUp.RST and not self._client_reads:
            self._to_client.clear()
            self._loop.call_soon(self._end, how)
            return
        self._to_client.append(lambda: self._end(how))
        self._loop.call_soon(self._deliver)

    def _end_output(self) -> None:
        self._to_client.append(lambda: self._end(HangUp.FIN))
        self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        while self._to_client and self._client_reads:
            self._to_client.popleft()()
        if self._paused_broker and self._unread <= BROKER_LIMIT // 4 and self._connection is not None:
            self._paused_broker = False
            self._engine.set_writable(self._connection, True, self._loop.time())
            self._driver.finish_step()

    def _hand_over(self, data: bytes) -> None:
        self._unread -= len(data)
        if self._client_open:
            if self._driver.watcher is not None:
                self._driver.watcher.handed_over(self.name, data)
            self._client.data_received(data)

    def _end(self, how: HangUp) -> None:
        if not self._client_open:
            return
        if self._driver.watcher is not None:
            self._driver.watcher.ended(self.name, "broker", how)
        if how is HangUp.RST:
            self._client_open = False
            self._client.connection_lost(ConnectionResetError("reset by the broker"))
        elif not self._client.eof_received():
            self.close()


class _BrokerEnd:
    def __init__(self, link: MemoryLink) -> None:
        self._link = link

    def write(self, units: list[Any]) -> None:
        self._link._send(b"".join(units))

    def hang_up(self, how: HangUp) -> None:
        self._link._hang_up(how)

    def end_output(self) -> None:
        self._link._end_output()

    def stop_reading(self) -> None:
        self._link._set_broker_reads(False)

    def resume_reading(self) -> None:
        self._link._set_broker_reads(True)
