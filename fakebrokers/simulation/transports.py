"""Transports over simulated connections; to protocols they are those of asyncio."""

from __future__ import annotations

import asyncio
import ssl as tls
from asyncio import constants, sslproto, transports
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

from fakebrokers.simulation.ends import End
from fakebrokers.simulation.sockets import SimulatedSocket
from fakebrokers.simulation.turns import TurningLoop

#: Bytes that one read takes at most.
READ_SIZE = 256 * 1024


class Server(Protocol):
    """What has accepted connections, see `servers.SimulatedServer`."""

    def attach(self, transport: SimulatedTransport, /) -> None:
        """A connection has begun."""

    def detach(self, transport: SimulatedTransport, /) -> None:
        """A connection has ended."""


class SimulatedTransport(transports._FlowControlMixin):
    """The transport of one end; behaves as that of a socket does."""

    _start_tls_compatible = True
    _sendfile_compatible = constants._SendfileMode.FALLBACK

    def __init__(
        self,
        loop: TurningLoop,
        end: End,
        protocol: asyncio.BaseProtocol,
        waiter: asyncio.Future[Any] | None = None,
        extra: dict[str, Any] | None = None,
        server: Server | None = None,
    ) -> None:
        about = {"peername": end.remote, "sockname": end.local, "socket": SimulatedSocket(end)}
        super().__init__({**(extra or {}), **about}, loop)
        self._loop = loop
        self.process = loop.network.here()  #: that it belongs to
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
        self._protocol: Any = protocol
        self._end.is_secret = isinstance(protocol, sslproto.SSLProtocol)
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

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
        self._end.is_woken = False
        if self._buffer:
            self._flush()
        if not (self._closing or self._paused or self._eof_heard):
            self._read()

    def _read(self) -> None:
        end = self._end
        if not end.inbox:
            self._read_end()
            return
        if self._is_buffered:
            self._read_into()
        else:
            data = end.receive(READ_SIZE)
            try:  # what `_call` does, for most that comes
                self._protocol.data_received(data)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self._failed("data_received", error)
        if end.inbox or end.ended or end.error is not None:
            end.wake()

    def _read_end(self) -> None:
        """There is nothing to read, and perhaps never will be."""
        try:
            if self._end.receive(READ_SIZE) is not None:
                self._eof_heard = True
                if not self._call("eof_received"):
                    self.close()
        except OSError as error:
            self._fatal_error(error, "Fatal read error on socket transport")

    def _read_into(self) -> None:
        buffer = self._call("get_buffer", -1)
        if buffer is not None:
            room = memoryview(buffer).cast("B")
            data = self._end.receive(min(len(room), READ_SIZE)) or b""
            room[: len(data)] = data
            self._call("buffer_updated", len(data))

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call the protocol; an error there ends the connection."""
        try:
            return getattr(self._protocol, name)(*arguments)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._failed(name, error)
            return True

    def _failed(self, name: str, error: BaseException) -> None:
        self._fatal_error(error, f"Fatal error: protocol.{name}() call failed.")

    # writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if type(data) is not bytes:
            if not isinstance(data, bytes | bytearray | memoryview):
                raise TypeError(f"data argument must be a bytes-like object, not {type(data).__name__!r}")
            data = memoryview(data).cast("B")
        if self._wrote_eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self._is_lost:
            return
        sent = 0
        if not self._buffer:
            try:
                sent = self._end.send(data)
            except OSError as error:
                self._fatal_error(error, "Fatal write error on socket transport")
                return
            if sent == len(data):
                return
        self._buffer += memoryview(data)[sent:]
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


def converse(
    loop: TurningLoop,
    end: End,
    protocol: asyncio.BaseProtocol,
    sslcontext: tls.SSLContext | None,
    *,
    waiter: asyncio.Future[Any] | None = None,
    server_side: bool = False,
    server_hostname: str | None = None,
    extra: dict[str, Any] | None = None,
    server: Server | None = None,
    **timeouts: Any,
) -> asyncio.Transport:
    """Join a protocol to a connection, with TLS between them or not."""
    if sslcontext is None:
        return SimulatedTransport(loop, end, protocol, waiter, extra, server)
    # as loops do it; its settings have been the same since Python 3.11
    new: Callable[..., Any] = sslproto.SSLProtocol
    layer = new(loop, protocol, sslcontext, waiter, server_side, server_hostname, **timeouts)
    SimulatedTransport(loop, end, layer, None, extra, server)
    transport: asyncio.Transport = layer._app_transport
    return transport


def _set_result(waiter: asyncio.Future[Any]) -> None:
    if not waiter.done():
        waiter.set_result(None)
