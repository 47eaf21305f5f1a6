"""The broker's ZeroMQ sockets on the loop thread (protocol notes, "Sockets").

libzmq keeps the TCP connections to itself. What is a connection here:

* on a ROUTER (receive, monitor) each routing id, from its first message on;
* on the DEALER (send) the socket as a whole, as long as it is bound.

Neither can end the connection of one peer, nor keep its connections without listening. So whatever ends a
connection or the listening closes the socket, with all that hang on it. Where one connection was meant,
the socket is bound again at once: ZeroMQ clients come back by themselves.
"""

from __future__ import annotations

import asyncio
import os
import socket as tcp
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

import zmq

from fakebrokers.connection import Connection
from fakebrokers.listener import Driver, TcpListener
from fakebrokers.pzq.codec import PzqCodec, SendCodec
from fakebrokers.pzq.frames import Parts
from fakebrokers.session import HangUp, Session

LINGER_MS = 1000  #: how long messages that were sent outlive their socket
_PEERS = 4096  #: routing ids that one socket remembers; libzmq never tells that a peer has gone
_BATCH = 64  #: messages in a row before other work of the loop gets its turn
_FREE_WITHIN_S = 1.0  #: libzmq gives a port back in the background; it takes about a tenth of a millisecond

# plain numbers: arithmetic with pyzmq's enums costs more than a send
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)
_IN, _OUT = int(zmq.POLLIN), int(zmq.POLLOUT)
_EVENTS, _RCVMORE = int(zmq.EVENTS), int(zmq.RCVMORE)

_contexts: dict[int, zmq.Context[zmq.Socket[bytes]]] = {}


def _context() -> zmq.Context[zmq.Socket[bytes]]:
    """libzmq's threads for this process; a forked child gets its own."""
    pid = os.getpid()
    if pid not in _contexts:
        _contexts[pid] = zmq.Context()
        _contexts[pid].max_sockets = 8192
    return _contexts[pid]


class ZmqListener(ABC):
    """One bound ZeroMQ socket.

    Args:
        driver: Whose engine gets the connections.
        endpoint: Where to bind: ``tcp://127.0.0.1:0`` (0 takes a free port) or ``ipc:///path``.
        high_water_mark: Messages that a pipe holds, in both directions.
        identity: The socket's own routing id; b"" for none.
    """

    kind: int

    def __init__(self, driver: Driver, endpoint: str, high_water_mark: int, identity: bytes = b"") -> None:
        self.driver = driver
        self.engine = driver.engine
        self.endpoint = endpoint
        self.identity = identity
        self._high_water_mark = high_water_mark
        self._socket: zmq.Socket[bytes] | None = None
        self._reading = True
        self._draining = False
        self._again: asyncio.Handle | None = None
        self._serving: asyncio.Task[None] | None = None
        self._wanted = False
        self.dying = False  #: the next `close` waits until the loop has done what is due now
        self._hole: TcpListener | None = None

    @property
    def port(self) -> int:
        """The TCP port; 0 for an ``ipc`` endpoint."""
        return int(self.endpoint.rpartition(":")[2]) if self.endpoint.startswith("tcp:") else 0

    @property
    def _host(self) -> str:
        return self.endpoint.partition("//")[2].rpartition(":")[0].strip("[]")

    # listening

    def bind(self) -> None:
        """Take the endpoint. Any thread; `OSError` if it is in use."""
        socket = self._open()
        try:
            socket.bind(self.endpoint.removesuffix(":0") + ":*" if self._any_port else self.endpoint)
        except zmq.ZMQError as error:
            socket.close(linger=0)
            raise OSError(error.errno, f"{error.strerror}: {self.endpoint}") from None
        self.endpoint = bytes(socket.getsockopt(zmq.LAST_ENDPOINT)).rstrip(b"\0").decode()
        self._socket = socket

    @property
    def _any_port(self) -> bool:
        return self.endpoint.startswith("tcp:") and self.endpoint.endswith(":0")

    def _open(self) -> zmq.Socket[bytes]:
        socket = _context().socket(self.kind)
        if self.kind == zmq.ROUTER:
            socket.router_mandatory = True  # tells what it drops
        socket.linger = LINGER_MS
        socket.sndhwm = socket.rcvhwm = self._high_water_mark
        socket.ipv6 = "[" in self.endpoint
        if self.identity:
            socket.routing_id = self.identity
        return socket

    async def serve(self) -> None:
        """Take clients from now on. On the loop."""
        self._wanted = True
        self._fill_hole()
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        self.driver.loop.add_reader(int(self._socket.getsockopt(zmq.FD)), self._drain)
        self.opened()
        self._later()

    def opened(self) -> None:  # noqa: B027 - optional hook
        """The socket is bound."""

    def close(self) -> None:
        """Refuse new connections; libzmq ends those that stand. On the loop."""
        self._fill_hole()
        self._wanted = False
        if self.dying:
            self.dying = False
            self.driver.loop.call_soon(self._drop_unwanted)
        else:
            self.drop()

    def _drop_unwanted(self) -> None:
        if not self._wanted:
            self.drop()

    def _fill_hole(self) -> None:
        if self._hole is not None:
            self._hole.close()
            self._hole = None

    def black_hole(self) -> None:
        """New connects hang instead of being refused or accepted. TCP endpoints only."""
        self.close()
        self._hole = TcpListener(self.driver, _nobody, self._host, self.port)
        self._hole.black_hole()

    def drop_all(self) -> None:
        """Cut every connection. On the loop."""
        self.drop()

    def drop(self) -> None:
        """Close the socket; what was sent still leaves. On the loop."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self._socket is not None:
            self.driver.loop.remove_reader(int(self._socket.getsockopt(zmq.FD)))
            self._socket.close()
            self._socket = None
            if self.port:
                _wait_until_free(self._host, self.port)
        self._reading = True

    def hang_up(self, how: HangUp) -> None:
        """End the connections of this socket, and bind it again at once if it is still wanted."""
        if self._socket is None:
            return
        self.drop()
        if self._wanted:
            self._serving = self.driver.loop.create_task(self.serve())
            self._serving.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.engine.errors.append(error)

    # reading

    def stop_reading(self) -> None:
        """Let the clients' messages pile up."""
        self._reading = False

    def resume_reading(self) -> None:
        """Read on."""
        self._reading = True
        self._later()

    def _later(self) -> None:
        if self._again is None:
            self._again = self.driver.loop.call_soon(self._drain)

    def _drain(self) -> None:
        """Read what has come. libzmq signals changes only, so nothing may stay behind."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        self._draining = True
        try:
            for _ in range(_BATCH):
                # asked each time, as the daemon does: else libzmq does not see that a pipe has room again
                if not (self._events() & _IN and self._reading and self._socket):
                    break
                self._receive(self._socket)
                self.driver.settle()
            else:
                self._later()
        finally:
            self._draining = False
        self.drained(self._events())

    def drained(self, events: int) -> None:  # noqa: B027 - optional hook
        """What had come was read; the socket can now do that."""

    def _events(self) -> int:
        """What the socket can do now. As asking eats the signal, a drain is due when there is more."""
        if self._socket is None:
            return 0
        events = int(self._socket.getsockopt(_EVENTS))
        if events & _IN and self._reading and not self._draining:
            self._later()
        return events

    @abstractmethod
    def _receive(self, socket: zmq.Socket[bytes]) -> None:
        """Read the message that is there."""

    def _send(self, *parts: bytes) -> int:
        """Send one message; returns 0, or libzmq's word for no room (EAGAIN) or no such peer."""
        socket = self._socket
        if socket is None:
            return zmq.EHOSTUNREACH
        last = len(parts) - 1
        try:
            for index, part in enumerate(parts):
                socket.send(part, _MORE if index < last else _NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno in (zmq.EAGAIN, zmq.EHOSTUNREACH):
                return error.errno
            raise
        return 0

    @staticmethod
    def _rest(socket: zmq.Socket[bytes], parts: list[bytes]) -> Parts:
        """The whole message, of which some parts were read."""
        while socket.getsockopt(_RCVMORE):
            parts.append(socket.recv(_NOBLOCK))
        return tuple(parts)


class RouterListener(ZmqListener):
    """A ROUTER socket: one connection for each routing id.

    Args:
        welcome: Makes session and codec for a new peer.
    """

    kind = zmq.ROUTER

    def __init__(
        self,
        driver: Driver,
        endpoint: str,
        high_water_mark: int,
        welcome: Callable[[], tuple[Session, PzqCodec]],
    ) -> None:
        super().__init__(driver, endpoint, high_water_mark)
        self.lost_messages = 0  #: dropped because a peer's pipe was full
        self._welcome = welcome
        self._peers: dict[bytes, Connection] = {}

    def drop(self) -> None:
        super().drop()
        peers, self._peers = self._peers, {}
        for connection in peers.values():
            self.engine.lost(connection, self.driver.loop.time(), "socket closed")

    def _receive(self, socket: zmq.Socket[bytes]) -> None:
        routing_id = socket.recv(_NOBLOCK)
        connection = self._peers.get(routing_id)
        if connection is not None and connection.alive:
            unit = self._rest(socket, [socket.recv(_NOBLOCK)])
        else:
            first = socket.recv(_NOBLOCK, copy=False)
            connection = self._peers[routing_id] = self._accept(routing_id, _who(first))
            unit = self._rest(socket, [first.bytes])
        self.engine.receive(connection, unit, self.driver.loop.time())

    def _accept(self, routing_id: bytes, who: str) -> Connection:
        session, codec = self._welcome()
        now = self.driver.loop.time()
        if len(self._peers) >= _PEERS:
            self._forget(next(iter(self._peers)), "silent for long")
        return self.engine.accept(session, codec, _Peer(self, routing_id), now, who)

    def send_to(self, routing_id: bytes, units: list[Parts]) -> None:
        """Send to one peer. As with the daemon, what finds its pipe full is lost."""
        for unit in units:
            problem = self._send(routing_id, *_parts(unit))
            if problem == zmq.EHOSTUNREACH:
                self._forget(routing_id, "closed by client")
                break
            if problem:
                self.lost_messages += 1
                name = self._peers[routing_id].name
                self.engine.journal.state(self.driver.loop.time(), name, "lost", f"pipe full: {unit[0]!r}")
        if not self._draining:
            self._events()

    def _forget(self, routing_id: bytes, why: str) -> None:
        connection = self._peers.pop(routing_id, None)
        if connection is not None:
            self.engine.lost(connection, self.driver.loop.time(), why)


class _Peer:
    """One routing id of a ROUTER; implements `connection.Transport`."""

    def __init__(self, listener: RouterListener, routing_id: bytes) -> None:
        self._listener = listener
        self._routing_id = routing_id
        self.hang_up = listener.hang_up
        self.stop_reading = listener.stop_reading
        self.resume_reading = listener.resume_reading

    def write(self, units: list[Any]) -> None:
        self._listener.send_to(self._routing_id, units)


class DealerListener(ZmqListener):
    """A DEALER socket: one connection for all peers, among which libzmq deals out what is sent.

    Implements `connection.Transport`.

    Args:
        welcome: Makes the session; it is given the question whether the socket has room.
    """

    kind = zmq.DEALER

    def __init__(
        self,
        driver: Driver,
        endpoint: str,
        high_water_mark: int,
        welcome: Callable[[Callable[[], bool]], Session],
        identity: bytes = b"",
    ) -> None:
        super().__init__(driver, endpoint, high_water_mark, identity)
        self._welcome = welcome
        self._connection: Connection | None = None
        self._backlog: deque[Parts] = deque()  # what a fault let go while there was no room
        self._room = False
        self._seen: list[str] = []

    def opened(self) -> None:
        if self._connection is None:
            session = self._welcome(self.room)
            now = self.driver.loop.time()
            self._connection = self.engine.accept(session, SendCodec(), self, now, self.endpoint)
            self.driver.settle()

    def drop(self) -> None:
        super().drop()
        self._backlog.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            self.engine.lost(connection, self.driver.loop.time(), "socket closed")

    def room(self) -> bool:
        """Whether one more message can leave at once; hands over first what was said."""
        if self._connection is not None and self._connection.dirty:
            self._connection.flush(self.engine.now)
        return self._room

    def write(self, units: list[Any]) -> None:
        self._backlog.extend(units)
        room = True
        while room and self._backlog:
            while self._backlog and not self._send(*_parts(self._backlog[0])):
                self._backlog.popleft()
            room = bool(self._events() & _OUT)
        self._room = room and not self._backlog

    def drained(self, events: int) -> None:
        self._room = bool(events & _OUT)
        if self._room and self._backlog:
            self.write([])
        if self._room and self._connection is not None:
            self.engine.set_writable(self._connection, True, self.driver.loop.time())
            self.driver.settle()

    def _receive(self, socket: zmq.Socket[bytes]) -> None:
        first = socket.recv(_NOBLOCK, copy=False)
        unit = self._rest(socket, [first.bytes])
        if self._connection is not None:
            who = _who(first)
            if who not in self._seen:
                self._seen.append(who)
                self._connection.peer = ", ".join(self._seen)
                self.engine.journal.state(self.driver.loop.time(), self._connection.name, "peer", who)
            self.engine.receive(self._connection, unit, self.driver.loop.time())


def _who(frame: zmq.Frame) -> str:
    """Socket type and address of a message's sender, from ZMTP's metadata: ``DEALER 127.0.0.1``."""
    return f"{frame.get('Socket-Type')} {frame.get('Peer-Address')}"


def _parts(unit: Parts | bytes) -> Parts:
    """A unit's parts; bare bytes, as fault plans may write them, are one part."""
    return (unit,) if isinstance(unit, bytes) else unit


def _wait_until_free(host: str, port: int) -> None:
    """Return when nothing listens there any more."""
    family = tcp.AF_INET6 if ":" in host else tcp.AF_INET
    deadline = time.monotonic() + _FREE_WITHIN_S
    while time.monotonic() < deadline:
        with tcp.socket(family, tcp.SOCK_STREAM) as probe:
            probe.setsockopt(tcp.SOL_SOCKET, tcp.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
                return
            except OSError:
                time.sleep(0.0001)


def _nobody(transport: object) -> tuple[Session, PzqCodec]:
    raise AssertionError("a full accept queue accepts nobody")
