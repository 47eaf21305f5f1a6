"""The broker's three sockets (docs/protocols/pzq.md, "Sockets").

libzmq keeps the TCP connections to itself. What is a connection here:

* on a ROUTER (receive, monitor) each routing id, from its first message on;
* on the DEALER (send) the socket as a whole, as long as it is bound.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import zmq

from fakebrokers.core.connection import Connection
from fakebrokers.core.driver import Driver
from fakebrokers.core.session import HangUp, Session
from fakebrokers.core.wire import Wire
from fakebrokers.pzq.codec import PzqCodec, SendCodec
from fakebrokers.pzq.frames import Parts
from fakebrokers.pzq.listener import NOBLOCK, POLLOUT, ZmqListener
from fakebrokers.pzq.pieces import whole

_PEERS = 4096  #: routing ids that one socket remembers; libzmq never tells that a peer has gone


class RouterListener(ZmqListener):
    """A ROUTER socket: one connection for each routing id.

    Args:
        new_session: Makes session and codec for a new peer.
    """

    kind = zmq.ROUTER

    def __init__(
        self,
        driver: Driver,
        wire: Wire,
        endpoint: str,
        high_water_mark: int,
        new_session: Callable[[], tuple[Session, PzqCodec]],
    ) -> None:
        super().__init__(driver, wire, endpoint, high_water_mark)
        self.lost_messages = 0  #: dropped because a peer's pipe was full
        self._new_session = new_session
        self._peers: dict[bytes, Connection] = {}

    def drop(self) -> None:
        super().drop()
        peers, self._peers = self._peers, {}
        for connection in peers.values():
            if self.driver.watcher is not None:
                self.driver.watcher.ended(connection.name, "broker", HangUp.FIN)
            self.engine.lost(connection, self.driver.loop.time(), "socket closed")

    def _receive(self, socket: zmq.Socket[bytes]) -> None:
        routing_id = socket.recv(NOBLOCK)
        connection = self._peers.get(routing_id)
        if connection is not None and connection.alive:
            unit = self._rest(socket, [socket.recv(NOBLOCK)])
        else:
            first = socket.recv(NOBLOCK, copy=False)
            unit = self._rest(socket, [first.bytes])
            connection = self._peers[routing_id] = self._accept(routing_id, _who(first))
        if self.driver.watcher is not None:
            self.driver.watcher.written(connection.name, unit)
        self.engine.receive(connection, unit, self.driver.loop.time())

    def _accept(self, routing_id: bytes, who: str) -> Connection:
        session, codec = self._new_session()
        now = self.driver.loop.time()
        if len(self._peers) >= _PEERS:
            self._forget(next(iter(self._peers)), "silent for long")
        connection = self.engine.accept(self.wire, session, codec, _Peer(self, routing_id), now, who)
        if self.driver.watcher is not None:
            self.driver.watcher.accepted(connection.name, str(session.describe()["socket"]))
        return connection

    def send_to(self, routing_id: bytes, units: list[Parts]) -> None:
        """Send to one peer. As with the daemon, what finds its pipe full is lost."""
        for unit in whole(units):
            if self.driver.watcher is not None:  # before: the peer may be quicker than this thread
                self.driver.watcher.handed_over(self._peers[routing_id].name, unit)
            problem = self._send(routing_id, *unit)
            if problem == zmq.EAGAIN:  # the peer may have read, and libzmq not have noted it yet
                self._events()
                problem = self._send(routing_id, *unit)
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
            if self.driver.watcher is not None:
                self.driver.watcher.ended(connection.name, "client", "")
            self.engine.lost(connection, self.driver.loop.time(), why)


class _Peer:
    """One routing id of a ROUTER; implements `send_path.Transport`."""

    def __init__(self, listener: RouterListener, routing_id: bytes) -> None:
        self._listener = listener
        self._routing_id = routing_id
        self.hang_up = listener.hang_up
        self.end_output = listener.end_output
        self.stop_reading = listener.stop_reading
        self.resume_reading = listener.resume_reading

    def write(self, units: list[Any]) -> None:
        self._listener.send_to(self._routing_id, units)


class DealerListener(ZmqListener):
    """A DEALER socket: one connection for all peers, among which libzmq deals out what is sent.

    Implements `send_path.Transport`.

    Args:
        new_session: Makes the session; it is given the question whether the socket has room.
    """

    kind = zmq.DEALER

    def __init__(
        self,
        driver: Driver,
        wire: Wire,
        endpoint: str,
        high_water_mark: int,
        new_session: Callable[[Callable[[], bool]], Session],
        identity: bytes = b"",
    ) -> None:
        super().__init__(driver, wire, endpoint, high_water_mark, identity)
        self._new_session = new_session
        self._connection: Connection | None = None
        self._backlog: deque[Parts] = deque()  # what a fault let go while there was no room
        self._room = False
        self._is_told = False  # that the first of the backlog is handed over
        self._seen: list[str] = []

    def opened(self) -> None:
        if self._connection is None:
            session = self._new_session(self.room)
            now = self.driver.loop.time()
            self._connection = self.engine.accept(self.wire, session, SendCodec(), self, now, self.endpoint)
            if self.driver.watcher is not None:
                self.driver.watcher.accepted(self._connection.name, str(session.describe()["socket"]))
            self.driver.finish_step()

    def drop(self) -> None:
        super().drop()
        self._backlog.clear()
        self._is_told = False
        connection, self._connection = self._connection, None
        if connection is not None:
            if self.driver.watcher is not None:
                self.driver.watcher.ended(connection.name, "broker", HangUp.FIN)
            self.engine.lost(connection, self.driver.loop.time(), "socket closed")

    def room(self) -> bool:
        """Whether one more message can leave at once; hands over first what was said."""
        if self._connection is not None and self._connection.dirty:
            self._connection.flush(self.engine.now)
        return self._room

    def write(self, units: list[Any]) -> None:
        self._backlog.extend(whole(units))
        room = True
        while room and self._backlog:
            while self._backlog and not self._hand_over(self._backlog[0]):
                self._backlog.popleft()
                self._is_told = False
            room = bool(self._events() & POLLOUT)
        self._room = room and not self._backlog

    def _hand_over(self, unit: Parts) -> int:
        """Send a message; 0, or why that cannot be. The watcher is told before, and of each once: where there
        is room, as what waits for a peer may never leave."""
        if self.driver.watcher is not None and self._connection is not None and not self._is_told:
            if not self._events() & POLLOUT:
                return int(zmq.EAGAIN)
            self._is_told = True
            self.driver.watcher.handed_over(self._connection.name, unit)
        return self._send(*unit)

    def drained(self, events: int) -> None:
        self._room = bool(events & POLLOUT)
        if not self._room or self._connection is None:
            return
        now = self.driver.loop.time()
        if self._backlog:
            self.engine.act(self._connection, now, self.write, [])
        if self._room:
            self.engine.set_writable(self._connection, True, now)
        self.driver.finish_step()

    def _receive(self, socket: zmq.Socket[bytes]) -> None:
        first = socket.recv(NOBLOCK, copy=False)
        unit = self._rest(socket, [first.bytes])
        if self._connection is not None:
            who = _who(first)
            if who not in self._seen:
                self._seen.append(who)
                self._connection.address = ", ".join(self._seen)
                self.engine.journal.state(self.driver.loop.time(), self._connection.name, "address", who)
            if self.driver.watcher is not None:
                self.driver.watcher.written(self._connection.name, unit)
            self.engine.receive(self._connection, unit, self.driver.loop.time())


def _who(frame: zmq.Frame) -> str:
    """Socket type and address of a message's sender, from ZMTP's metadata: ``DEALER 127.0.0.1``.

    A peer need not tell its type, and one of ZMTP 1.0 or 2.0 (libzmq 2 and 3) has no metadata at all;
    libzmq serves both.
    """
    found = [_metadata(frame, name) for name in ("Socket-Type", "Peer-Address")]
    return " ".join(filter(None, found)) or "ZMTP 1.0 or 2.0"


def _metadata(frame: zmq.Frame, name: str) -> str:
    """A property of the connection that a message came on; "" if it has none of that name."""
    try:
        value = frame.get(name)
    except zmq.ZMQError as error:
        if error.errno != zmq.EINVAL:
            raise
        return ""
    return str(value)
