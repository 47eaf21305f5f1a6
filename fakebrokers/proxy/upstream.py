"""The proxy's connections to the server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from fakebrokers.core.connection import Connection
from fakebrokers.core.driver import Driver
from fakebrokers.core.session import HangUp
from fakebrokers.core.tcp import WRITE_BUFFER_LIMIT
from fakebrokers.proxy.session import ProxySession


class UpstreamSocket(asyncio.Protocol):
    """One connection to the server; implements `session.Upstream`.

    Args:
        linger: Gives the seconds by which the client's FIN reaches the server late; asked when it comes.
    """

    def __init__(self, driver: Driver, session: ProxySession, linger: Callable[[], float]) -> None:
        assert isinstance(session.link, Connection)
        self._linger = linger
        self._driver = driver
        self._session = session
        self._connection = session.link
        self._socket: asyncio.Transport | None = None
        self._late_end: asyncio.TimerHandle | None = None
        self._output_over = self._input_over = self._closing = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport
        transport.set_write_buffer_limits(WRITE_BUFFER_LIMIT)
        with contextlib.suppress(OSError):
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._step(lambda: self._session.connected(self))

    def data_received(self, data: bytes) -> None:
        self._step(lambda: self._session.from_server(data))

    def eof_received(self) -> bool:
        self._input_over = True
        self._step(lambda: self._session.server_ended(self._driver.loop.time()))
        return True  # the client may go on sending

    def connection_lost(self, error: Exception | None) -> None:
        self._socket = None
        self._forget_late_end()
        if self._session.state != "closed":
            how = HangUp.RST if isinstance(error, ConnectionError) else HangUp.FIN
            self._step(lambda: self._session.server_gone(how))

    def pause_writing(self) -> None:
        self._step(lambda: self._session.server_writable(False))

    def resume_writing(self) -> None:
        self._step(lambda: self._session.server_writable(True))

    def _step(self, act: Callable[[], None]) -> None:
        self._driver.engine.act(self._connection, self._driver.loop.time(), act)
        self._driver.finish_step()

    # session.Upstream

    def write(self, data: bytes) -> None:
        if self._socket is not None:
            self._socket.write(data)

    def end_output(self) -> None:
        linger = self._linger()
        if linger:
            self._late_end = self._driver.loop.call_later(linger, self._end)
        else:
            self._end()

    def close(self) -> None:
        self._closing = True
        if self._output_over:
            self._end()
        elif self._late_end is None:
            self.end_output()

    def _end(self) -> None:
        """Send FIN; with `close` that is the end of the connection."""
        self._late_end = None
        self._output_over = True
        if self._socket is not None and self._closing:
            self._socket.close()
        elif self._socket is not None:
            self._socket.write_eof()

    def _forget_late_end(self) -> None:
        if self._late_end is not None:
            self._late_end.cancel()
            self._late_end = None

    def drop(self) -> None:
        """Abort it at once; what was written and not sent is lost."""
        self._forget_late_end()
        if self._socket is not None:
            self._socket.abort()

    def stop_reading(self) -> None:
        if self._socket is not None:
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        if self._socket is not None and not self._socket.is_closing() and not self._input_over:
            self._socket.resume_reading()  # after its end asyncio of Python 3.11.2 would report that again
