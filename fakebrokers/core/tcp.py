"""TCP listeners on the loop thread: the sockets between clients and an `Engine`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import weakref
from functools import partial
from typing import Any, Protocol

from fakebrokers.core.client_socket import holds_socket
from fakebrokers.core.connection import Connection
from fakebrokers.core.driver import Driver
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.session import HangUp
from fakebrokers.errors import shortage

#: Bytes in a connection's write buffer from which the fake stops reading and pushing.
WRITE_BUFFER_LIMIT = 4 * 1024 * 1024
#: Seconds without accepting when the system has no descriptor left.
ACCEPT_PAUSE_S = 0.1
#: Seconds until that is told again.
_SHORTAGE_AGAIN_S = 60.0
_LINGER_0 = struct.pack("ii", 1, 0)


class Transports(Protocol):
    """Those of one owner."""

    def add(self, transport: TcpTransport, /) -> None:
        """It has begun."""

    def discard(self, transport: TcpTransport, /) -> None:
        """It has ended."""


class Owner(Protocol):
    """Who accepts connections, or opens them.

    Attributes:
        driver: Whose engine gets the connections.
        endpoint: What is spoken on them.
    """

    driver: Driver
    endpoint: Endpoint

    @property
    def dials(self) -> bool:
        """Whether it opens them."""

    @property
    def listening(self) -> bool:
        """Whether new ones are wanted."""

    @property
    def transports(self) -> Transports:
        """All that are open."""


class TcpTransport(asyncio.BaseProtocol):
    """One connection, accepted or dialled; implements `send_path.Transport`."""

    def __init__(self, listener: Owner) -> None:
        self._listener = listener
        self._driver = listener.driver
        self._engine = listener.driver.engine
        self._connection: Connection | None = None
        self._socket: asyncio.Transport | None = None
        self._greeting = bytearray()  #: what a fault writes before the connection has a name
        self._paused = False
        self._input_over = False
        self._has_answered = False
        self._quick_acks = listener.endpoint.quick_acks and hasattr(socket, "TCP_QUICKACK")

    # asyncio.BaseProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if not self._listener.listening:  # closed between the kernel's accept and now
            transport.abort()
            return
        self._socket = transport
        transport.set_write_buffer_limits(WRITE_BUFFER_LIMIT)
        sock = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._listener.transports.add(self)
        host, port = (transport.get_extra_info("peername") or ("", 0))[:2]
        now = self._driver.loop.time()
        self._engine.now = now
        endpoint = self._listener.endpoint
        try:
            session, codec = endpoint.new_session(transport)
            self._connection = self._engine.accept(
                endpoint.wire, session, codec, self, now, f"{host}:{port}", dialled=self._listener.dials
            )
            if self._driver.watcher is not None:
                self._driver.watcher.accepted(self._connection.name)
                if self._greeting:
                    self._driver.watcher.handed_over(self._connection.name, bytes(self._greeting))
        except Exception as error:
            self._engine.keep_error(error, f"while it accepted {host}:{port}")
            transport.abort()
            return
        self._driver.finish_step()

    def received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._connection is not None:
            if self._driver.watcher is not None:
                self._driver.watcher.written(self._connection.name, data)
            self._engine.receive(self._connection, data, self._driver.loop.time())
            self._driver.finish_step()
            if self._quick_acks and not self._has_answered:
                self._acknowledge()
            self._has_answered = False

    def _acknowledge(self) -> None:
        """Have the kernel acknowledge what was read and not answered; it forgets such a wish by itself."""
        sock = self.socket
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def eof_received(self) -> bool:
        if self._connection is None:
            return False
        self._input_over = True
        goes_on = self._engine.input_ended(self._connection, self._driver.loop.time())
        self._driver.finish_step()
        return goes_on

    def connection_lost(self, error: Exception | None) -> None:
        self._listener.transports.discard(self)
        if self._connection is not None:
            if self._driver.watcher is not None:
                self._driver.watcher.ended(self._connection.name, "client", "")
            how = "reset by client" if isinstance(error, ConnectionError) else "closed by client"
            self._engine.lost(self._connection, self._driver.loop.time(), how)
            self._driver.finish_step()

    def pause_writing(self) -> None:
        if self._connection is not None:
            self._engine.set_writable(self._connection, False, self._driver.loop.time())

    def resume_writing(self) -> None:
        if self._connection is not None:
            self._engine.set_writable(self._connection, True, self._driver.loop.time())
            self._driver.finish_step()

    # send_path.Transport

    def write(self, units: list[Any]) -> None:
        self._has_answered = True
        if self._socket is not None and not self._socket.is_closing():  # else asyncio complains
            data = units[0] if len(units) == 1 else b"".join(units)
            if self._driver.watcher is not None:
                if self._connection is None:
                    self._greeting += data
                else:
                    self._driver.watcher.handed_over(self._connection.name, bytes(data))
            self._socket.write(data)

    def hang_up(self, how: HangUp) -> None:
        if self._socket is None:
            return
        if self._driver.watcher is not None and self._connection is not None and how is not HangUp.HALF_OPEN:
            self._driver.watcher.ended(self._connection.name, "broker", how)
        if how is HangUp.FIN:
            self._socket.close()
            return
        with contextlib.suppress(OSError):
            sock = self._socket.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_0)
        self._socket.abort()

    def end_output(self) -> None:
        if self._socket is not None and self._socket.can_write_eof():
            self._socket.write_eof()

    def stop_reading(self) -> None:
        if self._socket is not None:
            self._note_reading(False)
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        if self._socket is not None and not self._socket.is_closing():
            self._note_reading(True)
            if not self._input_over:  # asyncio of Python 3.11.2 would report the end of the input again
                self._socket.resume_reading()

    def _note_reading(self, goes_on: bool) -> None:
        if self._driver.watcher is not None and self._connection is not None:
            self._driver.watcher.reads(self._connection.name, goes_on)

    @property
    def socket(self) -> socket.socket | None:
        """The socket below, if it is still open."""
        return None if self._socket is None else self._socket.get_extra_info("socket")

    @property
    def unsent_bytes(self) -> int:
        """Bytes that were written and that the system has not taken yet."""
        return 0 if self._socket is None else self._socket.get_write_buffer_size()

    def drop(self) -> None:
        """End it without telling the engine (the fake stops)."""
        if self._socket is not None:
            self._socket.abort()


class BufferedTransport(TcpTransport, asyncio.BufferedProtocol):
    """One socket, which is read into the memory that all of a loop share."""

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._driver.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received(bytes(self._driver.read_buffer[:nbytes]))


class TcpDialler:
    """Connections that the fake opens itself, to nodes that listen. On the loop.

    Args:
        driver: Whose engine gets the connections.
        endpoint: What is spoken on them; its port plays no part.
    """

    dials = True
    listening = True

    def __init__(self, driver: Driver, endpoint: Endpoint) -> None:
        self.driver = driver
        self.endpoint = endpoint
        self.transports: set[TcpTransport] = set()

    async def dial(self, host: str, port: int, timeout: float = 10.0) -> None:
        """Connect; the session begins on return.

        Raises:
            OSError: Nobody accepts within `timeout` seconds.
        """
        tls = self.endpoint.tls
        connecting = self.driver.loop.create_connection(lambda: BufferedTransport(self), host, port, ssl=tls)
        await asyncio.wait_for(connecting, timeout)

    def close(self) -> None:
        """Cut every connection, without telling the engine."""
        for transport in tuple(self.transports):
            transport.drop()


class TcpListener:
    """A listening socket; can be closed and opened again on the same port.

    Args:
        driver: Whose engine gets the connections.
        endpoint: Which port to take, and what is spoken there.
        host: Address to listen on.
    """

    dials = False

    def __init__(self, driver: Driver, endpoint: Endpoint, host: str) -> None:
        self.driver = driver
        self.endpoint = endpoint
        self.host = host
        self.port = endpoint.port
        self.transports: set[TcpTransport] = set()
        self.listening = False
        self._tell_shortage_at = 0.0
        self._socket: socket.socket | None = None
        self._fillers: list[socket.socket] = []
        self._arriving: set[socket.socket] = set()  # accepted, not set up yet
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself holds them weakly

    def bind(self) -> None:
        """Take the port (any free one for 0) and let the kernel queue connects. Any thread."""
        self.reserve()
        assert self._socket is not None
        self._socket.listen(512)

    def reserve(self) -> None:
        """Take the port without listening: connects are refused, and nobody else gets it."""
        if self._socket is not None:
            return
        sock = self._new_socket()
        try:
            sock.bind((self.host, self.port))
        except OSError as error:
            sock.close()
            if isinstance(error, socket.gaierror):  # it names the host itself
                raise
            raise OSError(error.errno, error.strerror, f"{self.host}:{self.port}") from None
        sock.setblocking(False)
        self.port = sock.getsockname()[1]
        self._socket = sock
        _at_fork.add(self)

    def _new_socket(self) -> socket.socket:
        sock = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return sock

    async def serve(self) -> None:
        """Accept from now on. On the loop."""
        if not self.listening:
            self._let_go_of_fillers()
            self.bind()
            assert self._socket is not None
            self._watch(self._socket)
            self.listening = True

    def _watch(self, sock: socket.socket) -> None:
        """Accept when somebody connects.

        The loop holds the socket, and not the fake: a fake that nobody holds can go, and its socket is closed
        where it is watched.
        """
        self.driver.loop.add_reader(sock.fileno(), _accept, weakref.ref(self), sock)

    def _accept(self) -> None:
        """Accept whoever connects. Done by hand, because an `asyncio.Server` loses the connections that it
        has accepted and not yet set up when it is closed."""
        while self._socket is not None:
            try:
                accepted, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptors left, say: the client waits in the queue
                self._keep(error)
                self._pause(self._socket)
                return
            accepted.setblocking(False)
            self._arriving.add(accepted)
            task = self.driver.loop.create_task(self._set_up(accepted))
            self._tasks.add(task)
            task.add_done_callback(partial(self._is_set_up, accepted))

    def _keep(self, error: OSError) -> None:
        """Keep the error for the test; that the system is short of something only now and then."""
        known, now = shortage(error), self.driver.loop.time()
        if known is None or now >= self._tell_shortage_at:
            self.driver.engine.keep_error(known or error, f"at the listener of {self.host}:{self.port}")
            self._tell_shortage_at = now + _SHORTAGE_AGAIN_S

    def _pause(self, sock: socket.socket) -> None:
        """Try again a little later."""
        self.driver.loop.remove_reader(sock.fileno())

        def resume() -> None:
            if self._socket is sock and self.listening:
                self._watch(sock)

        self.driver.loop.call_later(ACCEPT_PAUSE_S, resume)

    async def _set_up(self, accepted: socket.socket) -> None:
        try:
            await self.driver.loop.connect_accepted_socket(
                lambda: BufferedTransport(self), accepted, ssl=self.endpoint.tls
            )
        except OSError:  # the TLS handshake failed, or the client is gone
            accepted.close()

    def _is_set_up(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._arriving.discard(accepted)
        if task.cancelled():  # perhaps before it began
            accepted.close()
        elif (error := task.exception()) is not None:
            self.driver.engine.keep_error(error, f"at the listener of {self.host}:{self.port}")
            accepted.close()

    def refuse(self, *, after_step: bool = False) -> None:
        """Refuse new connections and keep the port; the connections that are open go on. On the loop."""
        self.give_back()
        self.reserve()

    def close(self) -> None:
        """Give the port back and cut every connection, those that are still being set up too. On the loop."""
        self.give_back()
        for task in tuple(self._tasks):
            task.cancel()
        for transport in tuple(self.transports):
            transport.drop()

    def client_holds(self, connection: str, address: str) -> bool | None:
        """Whether a program on this machine still holds the socket of that address."""
        host, _, port = address.rpartition(":")
        return holds_socket(host, int(port)) if port.isdecimal() else None

    def give_back(self) -> None:
        """Refuse new connections and give the port back; those that are open go on. On the loop."""
        self._let_go_of_fillers()
        if self._socket is not None:
            if self.listening:
                self.driver.loop.remove_reader(self._socket.fileno())
            self._socket.close()
        self.listening = False
        self._socket = None

    def black_hole(self) -> None:
        """Fill the accept queue: connects from now on hang instead of being refused or accepted."""
        self.refuse()
        assert self._socket is not None
        self._socket.listen(0)
        for _ in range(4):  # the kernel rounds the length of the queue up
            filler = self._new_socket()
            filler.setblocking(False)
            filler.connect_ex((self.host, self.port))
            self._fillers.append(filler)

    def _let_go_of_fillers(self) -> None:
        if self._fillers:
            for filler in self._fillers:
                filler.close()
            self._fillers.clear()
            self.refuse()  # what queued up after them has to connect again

    def sockets(self) -> list[socket.socket]:
        """Every socket that this process has here."""
        accepted = [transport.socket for transport in self.transports]
        own = [] if self._socket is None else [self._socket]
        return [*own, *self._fillers, *self._arriving, *(sock for sock in accepted if sock is not None)]


def _accept(listener: weakref.ref[TcpListener], sock: socket.socket) -> None:
    if (there := listener()) is not None:
        there._accept()


_at_fork: weakref.WeakSet[TcpListener] = weakref.WeakSet()


def _let_go_after_fork() -> None:
    """A forked child must not keep the parent's ports and connections open."""
    null = os.open(os.devnull, os.O_RDWR)
    for listener in tuple(_at_fork):
        for sock in listener.sockets():
            if sock.fileno() >= 0:
                os.dup2(null, sock.fileno(), inheritable=False)
    os.close(null)
    _at_fork.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_after_fork)
