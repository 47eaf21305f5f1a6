"""Clients' sockets without ZeroMQ, for clients that run on one loop with the fake (and on virtual time).

What libzmq does for its user is done here: it connects, and reconnects, in silence; it keeps what is sent
while nobody is there; a ROUTER names its peer by a part in front, and drops what is meant for another; a
REQ adds and strips the empty part.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Literal, Protocol

from fakebrokers.core.connection import Connection
from fakebrokers.core.driver import Driver
from fakebrokers.core.session import HangUp, Session
from fakebrokers.core.wire import Wire
from fakebrokers.errors import UsageError
from fakebrokers.pzq.codec import PzqCodec
from fakebrokers.pzq.frames import Parts
from fakebrokers.pzq.pieces import bytes_of, whole

SocketType = Literal["DEALER", "ROUTER", "REQ"]

RECONNECT_MS = 100  #: libzmq's default
HIGH_WATER_MARK = 1000  #: libzmq's default; messages that wait for a connection

_numbers = count(1)
_ports = count(1)
_listeners: dict[str, MemoryZmqListener] = {}


def connect(
    endpoint: str,
    kind: SocketType,
    on_message: Callable[[Parts], None],
    reconnect_ms: int = RECONNECT_MS,
    line: Line | None = None,
) -> MemorySocket:
    """A client's socket at a fake's endpoint in memory; see `MemorySocket`.

    Raises:
        UsageError: There is no such fake.
    """
    if endpoint not in _listeners:
        raise UsageError(f"no PZQ fake in memory at {endpoint}; there are: {', '.join(_listeners) or 'none'}")
    return _listeners[endpoint].connect(kind, on_message, reconnect_ms, line)


class Line(Protocol):
    """A client that takes the bytes on the way (frames of ZMTP) instead of messages."""

    def feed(self, data: bytes) -> None:
        """What one read gives: parts of a message, or several."""

    def lost(self) -> None:
        """The connection has ended after what came."""


class MemoryZmqListener:
    """One of the fake's sockets in memory; implements `listeners.Listener`.

    Args:
        driver: Whose engine gets the connections.
        wire: What they speak.
        host: First part of its address.
        new_session: Makes session and codec.
        identity: The fake's own routing id; b"" for none.
    """

    def __init__(
        self,
        driver: Driver,
        wire: Wire,
        host: str,
        new_session: Callable[[], tuple[Session, PzqCodec]],
        identity: bytes = b"",
    ) -> None:
        self.driver = driver
        self.wire = wire
        self.new_session = new_session
        self.identity = identity
        self.port = 0
        self.listening = False
        self._host = host
        self._clients: list[MemorySocket] = []

    @property
    def endpoint(self) -> str:
        """Its address, such as ``tcp://127.0.0.1:3``."""
        return f"tcp://{self._host}:{self.port}"

    def bind(self) -> None:
        """Be found under a port of its own."""
        self.port = next(_ports)
        _listeners[self.endpoint] = self

    async def serve(self) -> None:
        """Take connections; clients that wait for that connect now."""
        self.listening = True
        for client in self._clients:
            client.reconnect()

    def refuse(self, *, after_step: bool = False) -> None:
        """Take no connections; those that are open go on."""
        self.listening = False

    def black_hole(self) -> None:
        """Take no connections: a client of ZeroMQ sees no difference."""
        self.listening = False

    def close(self) -> None:
        """Be found no more."""
        self.listening = False
        _listeners.pop(self.endpoint, None)

    def hang_up(self, how: HangUp) -> None:
        """In memory the connections stay when the identity changes."""

    def client_holds(self, connection: str, address: str) -> bool | None:
        """Whether a client has this connection now."""
        return any(client.holds(connection) for client in self._clients)

    def connect(
        self,
        kind: SocketType,
        on_message: Callable[[Parts], None],
        reconnect_ms: int = RECONNECT_MS,
        line: Line | None = None,
    ) -> MemorySocket:
        """Join a client's socket to this one; see `MemorySocket`."""
        client = MemorySocket(self, kind, on_message, reconnect_ms, line)
        self._clients.append(client)
        return client


class MemorySocket:
    """A client's socket; for the fake it is the `send_path.Transport`.

    Args:
        listener: The fake's socket that it connects to.
        kind: The client's socket type.
        on_message: Gets what arrives, as the client's socket would give it; each hop takes one turn of
            the loop.
        reconnect_ms: How long after a loss it connects again; -1: never.
        line: Gets the bytes in place of `on_message`, what is written at a time as one.
    """

    def __init__(
        self,
        listener: MemoryZmqListener,
        kind: SocketType,
        on_message: Callable[[Parts], None],
        reconnect_ms: int = RECONNECT_MS,
        line: Line | None = None,
    ) -> None:
        self.routing_id = listener.identity or b"\0" + next(_numbers).to_bytes(4, "big")
        self._listener = listener
        self._driver = driver = listener.driver
        self._engine = driver.engine
        self._loop = driver.loop
        self._kind = kind
        self._on_message = on_message
        self._line = line
        self._open = True
        self._comes_back = True
        self._reconnect_ms = reconnect_ms
        self._reading = True
        self._connection: Connection | None = None
        self._name = ""  # of the connection, or of the last one
        self._waiting: list[Parts] = []
        self.reconnect()

    # the client

    def send(self, *parts: bytes) -> None:
        """Send a message; never blocks, never fails. What is above the high-water mark is lost."""
        if self._kind == "ROUTER":
            if parts[0] != self.routing_id:
                return
            parts = parts[1:]
        elif self._kind == "REQ":
            parts = (b"", *parts)
        self._loop.call_soon(self._arrive, parts)

    def close(self) -> None:
        """End it; what was sent has left."""
        if self._open and self._connection is not None and self._driver.watcher is not None:
            self._driver.watcher.ended(self._name, "client", "")
        self._open = False
        self._loop.call_soon(self._gone, "closed by client")

    def holds(self, connection: str) -> bool:
        """Whether it has this connection now."""
        return self._open and self._connection is not None and self._connection.name == connection

    # connecting

    def reconnect(self) -> None:
        """Connect if that is wanted, possible, and not done already."""
        if not (self._open and self._comes_back) or self._connection is not None:
            return
        if not self._listener.listening:
            self._reconnect_later()
            return
        session, codec = self._listener.new_session()
        now = self._loop.time()
        self._reading = True
        wire, address = self._listener.wire, f"{self._kind} memory"
        self._connection = self._engine.accept(wire, session, codec, self, now, address)
        self._name = self._connection.name
        if self._driver.watcher is not None:
            self._driver.watcher.accepted(self._name, str(session.describe()["socket"]))
        self._read_on()
        self._driver.finish_step()

    def _reconnect_later(self) -> None:
        self._comes_back = self._reconnect_ms >= 0
        if self._comes_back:
            self._loop.call_later(self._reconnect_ms / 1000, self.reconnect)

    def _arrive(self, parts: Parts) -> None:
        if self._connection is not None and self._reading:
            if self._driver.watcher is not None:
                self._driver.watcher.written(self._name, parts)
            self._engine.receive(self._connection, parts, self._loop.time())
            self._driver.finish_step()
        elif len(self._waiting) < HIGH_WATER_MARK:
            self._waiting.append(parts)

    def _read_on(self) -> None:
        waiting, self._waiting = self._waiting, []
        for parts in waiting:
            self._loop.call_soon(self._arrive, parts)

    def _feed(self, line: Line, units: list[Any], connection: str) -> None:
        if not self._open:
            return
        for parts in whole(units):
            if self._driver.watcher is not None:
                self._driver.watcher.handed_over(connection or self._name, parts)
        line.feed(bytes_of(units))

    def _deliver(self, parts: Parts, connection: str = "") -> None:
        if not self._open:
            return
        if self._driver.watcher is not None:
            self._driver.watcher.handed_over(connection or self._name, parts)
        if self._kind == "ROUTER":
            parts = (self.routing_id, *parts)
        elif self._kind == "REQ":
            if len(parts) < 2 or parts[0]:
                return  # as libzmq does
            parts = parts[1:]
        self._on_message(parts)

    def _gone(self, how: str) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._engine.lost(connection, self._loop.time(), how)
            self._driver.finish_step()

    # send_path.Transport

    def write(self, units: list[Any]) -> None:
        name = "" if self._connection is None else self._name  # not known yet while it is accepted
        if self._line is not None:
            self._loop.call_soon(self._feed, self._line, list(units), name)
            return
        for unit in whole(units):
            self._loop.call_soon(self._deliver, unit, name)

    def hang_up(self, how: HangUp) -> None:
        if self._connection is not None and self._driver.watcher is not None:
            self._driver.watcher.ended(self._name, "broker", how)
        if self._line is not None:
            self._loop.call_soon(self._line.lost)
        self._connection = None
        self._reconnect_later()

    def end_output(self) -> None:
        """ZeroMQ has no half-closed connections."""

    def stop_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._read_on()
