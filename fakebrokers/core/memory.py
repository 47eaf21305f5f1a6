"""Connections through memory, for cores that run on one loop without sockets (and on virtual time).

Fakes in memory have addresses all the same, so that clients find the node that a broker names: see `dial`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakebrokers.core.connection import Connection
from fakebrokers.core.session import Codec, HangUp, Session

if TYPE_CHECKING:
    from fakebrokers.core.driver import Driver

#: Bytes under way to a broker that does not read from which the client is told to pause.
CLIENT_LIMIT = 256 * 1024
#: Bytes under way to a client that does not read from which the broker is told to pause.
BROKER_LIMIT = 4 * 1024 * 1024

Door = Callable[[asyncio.Protocol], "MemoryLink"]

_doors: dict[str, Door] = {}
_ports = itertools.count(1)


def open_door(host: str, door: Door) -> int:
    """Make a fake reachable under a port of its own, which is returned."""
    port = next(_ports)
    _doors[f"{host}:{port}"] = door
    return port


def close_door(host: str, port: int) -> None:
    """The fake has stopped."""
    _doors.pop(f"{host}:{port}", None)


def dial(endpoint: str, client: asyncio.Protocol) -> MemoryLink:
    """Connect a client to the fake with that address. `ConnectionRefusedError` if there is none."""
    door = _doors.get(endpoint)
    if door is None:
        raise ConnectionRefusedError(f"no fake in memory at {endpoint}")
    return door(client)


class MemoryLink:
    """Both ends of a connection without sockets.

    The broker's end implements `outgoing.Transport`. The client's end offers what client code
    uses of `asyncio.Transport` (`write`, `close`, `abort`, `is_closing`, `pause_reading`,
    `resume_reading`) and calls an `asyncio.Protocol`. Each hop takes one turn of the loop.
    """

    def __init__(
        self,
        driver: Driver,
        welcome: Callable[[], tuple[Session, Codec]],
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
        session, codec = welcome()
        now = self._loop.time()
        self._engine.now = now
        self._connection = self._engine.accept(session, codec, _BrokerEnd(self), now, "memory")
        self.name = self._connection.name
        self._driver.settle()

    # the client's end

    def write(self, data: bytes) -> None:
        """Client to broker."""
        if self._client_open:
            self._to_broker.append(bytes(data))
            self._backlog += len(data)
            self._loop.call_soon(self._arrive)
            if self._backlog > CLIENT_LIMIT and not self._paused_client:
                self._paused_client = True
                self._client.pause_writing()

    def close(self) -> None:
        """The client ends the connection."""
        if self._client_open:
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
            self._driver.settle()
        if self._paused_client and self._backlog <= CLIENT_LIMIT // 2 and self._client_open:
            self._paused_client = False
            self._client.resume_writing()

    def _gone(self, how: str) -> None:
        while self._to_broker and self._broker_reads and self._connection is not None:
            self._arrive()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._engine.lost(connection, self._loop.time(), how)
            self._driver.settle()

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

    def _deliver(self) -> None:
        while self._to_client and self._client_reads:
            self._to_client.popleft()()
        if self._paused_broker and self._unread <= BROKER_LIMIT // 4 and self._connection is not None:
            self._paused_broker = False
            self._engine.set_writable(self._connection, True, self._loop.time())
            self._driver.settle()

    def _hand_over(self, data: bytes) -> None:
        self._unread -= len(data)
        if self._client_open:
            self._client.data_received(data)

    def _end(self, how: HangUp) -> None:
        if not self._client_open:
            return
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

    def stop_reading(self) -> None:
        self._link._set_broker_reads(False)

    def resume_reading(self) -> None:
        self._link._set_broker_reads(True)
