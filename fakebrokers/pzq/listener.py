"""A ZeroMQ socket that the loop thread drives.

libzmq works in threads of its own and tells by a file descriptor that something has changed, once for each
change. Whoever asks the socket what it can do, or sends, may eat that signal: hence the care in `_drain`.

A socket can neither end the connection of one peer, nor keep its connections without listening. So
whatever ends a connection or the listening closes the socket, with all that hang on it. Where one
connection was meant, the socket is bound again at once: ZeroMQ clients come back by themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket as tcp
import stat
import sys
import weakref
from abc import ABC, abstractmethod
from threading import Event

from fakebrokers.core.clock import monotonic
from fakebrokers.core.driver import Driver
from fakebrokers.core.kept_port import KeptPort
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.session import Codec, HangUp, Session
from fakebrokers.core.tcp import TcpListener
from fakebrokers.core.wire import Wire
from fakebrokers.extras import needs
from fakebrokers.pzq.frames import Parts

with needs("pzq", "the fake PZQ"):
    import zmq

LINGER_MS = 1000  #: how long messages that were sent outlive their socket
_BATCH = 64  #: messages in a row before other work of the loop gets its turn
_NEEDED = 16  #: descriptors that a context and a socket take, with room to spare
_RETRY_S = 0.1  #: until a socket is looked at again that could not be read at all
_FREE_WITHIN_S = 1.0  #: libzmq gives a port back in the background; it takes about a tenth of a millisecond

# plain numbers: arithmetic with pyzmq's enums costs more than a send
NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)
POLLIN, POLLOUT = int(zmq.POLLIN), int(zmq.POLLOUT)
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
        wire: What they speak.
        endpoint: Where to bind: ``tcp://127.0.0.1:0`` (0 takes a free port) or ``ipc:///path``.
        high_water_mark: Messages that a pipe holds, in both directions.
        identity: The socket's own routing id; b"" for none.
    """

    kind: int

    def __init__(
        self, driver: Driver, wire: Wire, endpoint: str, high_water_mark: int, identity: bytes = b""
    ) -> None:
        self.driver = driver
        self.wire = wire
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
        self._hole: TcpListener | None = None
        self._kept: KeptPort | None = None  # while libzmq is between two sockets

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
            self._check_path()
            self._keep_port()
            socket.bind(self.endpoint.removesuffix(":0") + ":*" if self._any_port else self.endpoint)
        except zmq.ZMQError as error:
            socket.close(linger=0)
            self._give_back()
            raise OSError(error.errno, f"{error.strerror}: {self.endpoint}") from None
        except OSError:
            socket.close(linger=0)
            self._give_back()
            raise
        self.endpoint = bytes(socket.getsockopt(zmq.LAST_ENDPOINT)).rstrip(b"\0").decode()
        self._socket = socket

    def _keep_port(self) -> None:
        """Take the port in front of libzmq, so that nobody gets it while one socket replaces another.

        What cannot be had is left to libzmq, which knows more addresses ("*", the names of interfaces) and
        says what is wrong.
        """
        if self._kept is None and self.endpoint.startswith("tcp:") and sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._kept = KeptPort(self._host, self.port)
                self.endpoint = f"{self.endpoint.rpartition(':')[0]}:{self._kept.port}"

    def _give_back(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    @property
    def _path(self) -> str:
        """The file of an ``ipc`` endpoint; "" for TCP, and for a name without a file."""
        path = self.endpoint.removeprefix("ipc://")
        return "" if path == self.endpoint or path.startswith("@") else path

    def _check_path(self) -> None:
        """libzmq replaces whatever lies where it binds; only a socket that nobody listens at may go.

        Raises:
            OSError: Something else is there, or somebody listens.
        """
        path = self._path
        if not path or not os.path.lexists(path):
            return
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(errno.EEXIST, f"the path is a file and no socket: {self.endpoint}")
        with tcp.socket(tcp.AF_UNIX, tcp.SOCK_STREAM) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                return  # left behind by a process that is gone
        raise OSError(errno.EADDRINUSE, f"{os.strerror(errno.EADDRINUSE)}: {self.endpoint}")

    @property
    def _any_port(self) -> bool:
        return self.endpoint.startswith("tcp:") and self.endpoint.endswith(":0")

    def _open(self) -> zmq.Socket[bytes]:
        _check_descriptors()
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
        # the loop holds the socket, and not the fake, which may go when nobody holds it
        watched = int(self._socket.getsockopt(zmq.FD))
        self.driver.loop.add_reader(watched, _drain, weakref.ref(self), self._socket)
        self.opened()
        self._later()

    def opened(self) -> None:  # noqa: B027 - optional hook
        """The socket is bound."""

    def refuse(self, *, after_step: bool = False) -> None:
        """Refuse new connections; libzmq ends those that are open. On the loop."""
        self._fill_hole()
        self._wanted = False
        if after_step:
            self.driver.loop.call_soon(self._drop_unwanted)
        else:
            self.drop()

    def close(self) -> None:
        """Give the endpoint back and cut every connection. On the loop."""
        self.refuse()
        self._give_back()

    def client_holds(self, connection: str, address: str) -> bool | None:
        """Nobody can tell: libzmq keeps the TCP connections to itself."""
        return None

    def _drop_unwanted(self) -> None:
        if not self._wanted:
            self.drop()

    def _fill_hole(self) -> None:
        if self._hole is not None:
            self._hole.close()
            self._hole = None

    def black_hole(self) -> None:
        """New connects hang instead of being refused or accepted. TCP endpoints only."""
        self.refuse()
        self._hole = TcpListener(self.driver, Endpoint(self.wire, _nobody, self.port), self._host)
        self._hole.black_hole()

    def drop(self) -> None:
        """Close the socket; what was sent still leaves. On the loop."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self._socket is not None:
            self.driver.loop.remove_reader(int(self._socket.getsockopt(zmq.FD)))
            self._socket.close()
            self._socket = None
            if self._path:
                with contextlib.suppress(OSError):
                    os.unlink(self._path)  # libzmq leaves it
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

    def end_output(self) -> None:  # noqa: B027 - there is nothing to do
        """ZeroMQ has no half-closed connections."""

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
        try:
            self._read_batch()
            self.drained(self._events())
        except Exception as error:
            self._failed(error)
            if self._socket is not None and self._again is None:  # its signal is eaten, no other will come
                self._again = self.driver.loop.call_later(_RETRY_S, self._drain)

    def _read_batch(self) -> None:
        self._draining = True
        try:
            for _ in range(_BATCH):
                # asked each time, as the daemon does: else libzmq does not see that a pipe has room again
                if not (self._events() & POLLIN and self._reading and self._socket):
                    break
                self._take(self._socket)
                self.driver.finish_step()
            else:
                self._later()
        finally:
            self._draining = False

    def _take(self, socket: zmq.Socket[bytes]) -> None:
        """Read one message and handle it. If that fails the next message comes out whole all the same."""
        try:
            self._receive(socket)
        except Exception as error:
            self._failed(error)
            if socket is self._socket:
                self._rest(socket, [])

    def _failed(self, error: Exception) -> None:
        self.engine.keep_error(error, f"at the socket {self.endpoint}")

    def drained(self, events: int) -> None:  # noqa: B027 - optional hook
        """What had come was read; the socket can now do that."""

    def _events(self) -> int:
        """What the socket can do now. As asking eats the signal, a drain is due when there is more."""
        if self._socket is None:
            return 0
        events = int(self._socket.getsockopt(_EVENTS))
        if events & POLLIN and self._reading and not self._draining:
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
                socket.send(part, _MORE if index < last else NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno in (zmq.EAGAIN, zmq.EHOSTUNREACH):
                return error.errno
            raise
        return 0

    @staticmethod
    def _rest(socket: zmq.Socket[bytes], parts: list[bytes]) -> Parts:
        """The whole message, of which some parts were read."""
        while socket.getsockopt(_RCVMORE):
            parts.append(socket.recv(NOBLOCK))
        return tuple(parts)


def _check_descriptors() -> None:
    """Check that libzmq gets what it needs: without, it ends the whole process.

    Raises:
        OSError: There are not as many.
    """
    taken: list[int] = []
    try:
        for _ in range(_NEEDED):
            taken.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for each in taken:
            os.close(each)


def _drain(listener: weakref.ref[ZmqListener], socket: zmq.Socket[bytes]) -> None:
    if (there := listener()) is not None:
        there._drain()


def _wait_until_free(host: str, port: int) -> None:
    """Return when nothing listens there any more."""
    family = tcp.AF_INET6 if ":" in host else tcp.AF_INET
    deadline = monotonic() + _FREE_WITHIN_S
    pause = Event()  # where libfaketime sets the date, `time.sleep` fails
    while monotonic() < deadline:
        with tcp.socket(family, tcp.SOCK_STREAM) as probe:
            probe.setsockopt(tcp.SOL_SOCKET, tcp.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
                return
            except OSError:
                pause.wait(0.0001)


def _nobody(transport: object) -> tuple[Session, Codec]:
    raise AssertionError("a full accept queue accepts no client")
