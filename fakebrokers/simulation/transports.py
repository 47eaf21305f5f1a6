"""Transports over simulated connections and datagrams; to protocols they are those of asyncio."""

from __future__ import annotations

import asyncio
from asyncio import constants, sslproto, transports
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from fakebrokers.simulation.hosts import Box, Process
from fakebrokers.simulation.sockets import SimulatedSocket

if TYPE_CHECKING:
    from fakebrokers.simulation.ends import Address, End
    from fakebrokers.simulation.loop import SimulationLoop
    from fakebrokers.simulation.servers import SimulatedServer

#: Bytes that one read takes at most.
READ_SIZE = 256 * 1024


class SimulatedTransport(transports._FlowControlMixin):
    """The transport of one end; behaves as that of a socket does."""

    _start_tls_compatible = True
    _sendfile_compatible = constants._SendfileMode.FALLBACK

    def __init__(
        self,
        loop: SimulationLoop,
        end: End,
        protocol: asyncio.BaseProtocol,
        waiter: asyncio.Future[Any] | None = None,
        extra: dict[str, Any] | None = None,
        server: SimulatedServer | None = None,
    ) -> None:
        about = {"peername": end.remote, "sockname": end.local, "socket": SimulatedSocket(end)}
        super().__init__({**(extra or {}), **about}, loop)
        self._loop = loop
        self._end = end
        self._server = server
        self._buffer = bytearray()
        self._closing = False
        self._is_lost = False  #: `connection_lost` is called, or going to be
        self._paused = False
        self._wrote_eof = False
        self._eof_heard = False
        self.set_protocol(protocol)
        end.at_close = self._end_closed
        loop.transports[self] = None
        if server is not None:
            server.attach(self)
        loop.call_soon(protocol.connection_made, self)
        loop.call_soon(self._begin)
        if waiter is not None:
            loop.call_soon(_set_result, waiter)

    def __repr__(self) -> str:
        state = "closed" if self._is_lost else "closing" if self._closing else "open"
        return f"<{type(self).__name__} {self._end.local} > {self._end.remote} {state}>"

    def _begin(self) -> None:
        if not self._is_lost:
            self._end.watch(self._ready)

    # asyncio.BaseTransport

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        self._end.is_secret = isinstance(protocol, sslproto.SSLProtocol)
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if not self._buffer:
            self._lose(None)

    def abort(self) -> None:
        self._force_close(None)

    # reading

    def is_reading(self) -> bool:
        return not (self._closing or self._paused)

    def pause_reading(self) -> None:
        if self.is_reading():
            self._paused = True

    def resume_reading(self) -> None:
        if not self._closing and self._paused:
            self._paused = False
            self._end.wake()

    def _ready(self) -> None:
        """The end has something, or room."""
        if self._buffer:
            self._flush()
        if self.is_reading() and not self._eof_heard and not self._is_lost:
            self._read()

    def _read(self) -> None:
        try:
            if self._is_buffered:
                self._read_into()
                return
            data = self._end.receive(READ_SIZE)
        except OSError as error:
            self._fatal_error(error, "Fatal read error on socket transport")
            return
        if data:
            self._call("data_received", data)
        self._after_read(data)

    def _read_into(self) -> None:
        if not self._end.inbox:
            self._after_read(self._end.receive(1))
            return
        buffer = self._call("get_buffer", -1)
        if buffer is None:
            return
        room = memoryview(buffer).cast("B")
        data = self._end.receive(min(len(room), READ_SIZE)) or b""
        room[: len(data)] = data
        self._call("buffer_updated", len(data))
        self._after_read(data)

    def _after_read(self, data: bytes | None) -> None:
        if data:
            if self._end.inbox or self._end.ended or self._end.error is not None:
                self._end.wake()
        elif data is not None:
            self._eof_heard = True
            if not self._call("eof_received"):
                self.close()

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call the protocol; an error there ends the connection."""
        try:
            return getattr(self._protocol, name)(*arguments)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._fatal_error(error, f"Fatal error: protocol.{name}() call failed.")
            return True

    # writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data argument must be a bytes-like object, not {type(data).__name__!r}")
        if self._wrote_eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self._is_lost:
            return
        if not self._buffer:
            try:
                data = memoryview(data).cast("B")[self._end.send(data) :]
            except OSError as error:
                self._fatal_error(error, "Fatal write error on socket transport")
                return
            if not data:
                return
        self._buffer += data
        self._maybe_pause_protocol()  # type: ignore[attr-defined] # typeshed leaves it out

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def _flush(self) -> None:
        try:
            del self._buffer[: self._end.send(self._buffer)]
        except OSError as error:
            self._buffer.clear()
            self._fatal_error(error, "Fatal write error on socket transport")
            return
        self._maybe_resume_protocol()  # type: ignore[attr-defined] # typeshed leaves it out
        if self._buffer:
            return
        if self._closing:
            self._lose(None)
        elif self._wrote_eof:
            self._end.finish()

    def write_eof(self) -> None:
        if self._closing or self._wrote_eof:
            return
        self._wrote_eof = True
        if not self._buffer:
            self._end.finish()

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    # the end

    def _fatal_error(self, error: BaseException, message: str = "Fatal error on transport") -> None:
        if not isinstance(error, OSError):
            about = {"message": message, "exception": error, "transport": self, "protocol": self._protocol}
            self._loop.call_exception_handler(about)
        self._force_close(error)

    def _force_close(self, error: BaseException | None) -> None:
        if not self._is_lost:
            self._buffer.clear()
            self._closing = True
            self._lose(error)

    def _lose(self, error: BaseException | None) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._end.watch(None)
            self._loop.call_soon(self._lost, error)

    def _end_closed(self) -> None:
        """Its own doing, or its process was killed."""
        self._closing = self._is_lost = True
        self._loop.transports.pop(self, None)

    def _lost(self, error: BaseException | None) -> None:
        try:
            self._protocol.connection_lost(cast(Exception | None, error))
        finally:
            self._end.close()
            if self._server is not None:
                self._server.detach(self)


class SimulatedDatagramTransport(asyncio.DatagramTransport, Box):
    """A port that takes datagrams; implements `hosts.Closable` and `hosts.Box`."""

    def __init__(
        self,
        loop: SimulationLoop,
        process: Process,
        local: Address,
        remote: Address | None,
        protocol: asyncio.DatagramProtocol,
    ) -> None:
        super().__init__({"sockname": local, "peername": remote})
        self._loop = loop
        self._process = process
        self._local = local
        self._remote = remote
        self._protocol = protocol
        self._closing = False
        process.host.boxes[local[1]] = self
        process.hold(self)
        loop.call_soon(protocol.connection_made, self)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast(asyncio.DatagramProtocol, protocol)

    def is_closing(self) -> bool:
        return self._closing

    def sendto(self, data: bytes | bytearray | memoryview, addr: Any = None) -> None:
        if self._remote is not None and addr not in (None, self._remote):
            raise ValueError(f"Invalid address: must be None or {self._remote}")
        target = self._remote or addr
        if not self._closing and target is not None:
            address = self._loop.network.address_of(target[0], self._process.host)
            self._loop.network.send_datagram(self._local, (address, target[1]), bytes(data))

    def arrived(self, data: bytes, source: Address) -> None:
        """A datagram has come."""
        if self._remote in (None, source):
            self._loop.call_soon(self._receive, data, source, context=self._process.context.copy())

    def _receive(self, data: bytes, source: Address) -> None:
        if not self._closing:
            self._protocol.datagram_received(data, source)

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._process.host.boxes.pop(self._local[1], None)
            self._process.let_go(self)
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close


def _set_result(waiter: asyncio.Future[Any]) -> None:
    if not waiter.done():
        waiter.set_result(None)
