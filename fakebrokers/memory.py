"""Connections through memory, for cores that run on one loop without sockets (and on virtual time)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakebrokers.connection import Connection
from fakebrokers.session import Codec, HangUp, Session

if TYPE_CHECKING:
    from fakebrokers.listener import Driver


class MemoryLink:
    """Both ends of a connection without sockets.

    The broker's end implements `connection.Transport`. The client's end offers what client code
    uses of `asyncio.Transport` (`write`, `close`, `abort`, `is_closing`) and calls an
    `asyncio.Protocol`. Each hop takes one turn of the loop.
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
        self._reading = True
        self._backlog: list[bytes] = []
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
            self._loop.call_soon(self._arrive, bytes(data))

    def close(self) -> None:
        """The client ends the connection."""
        if self._client_open:
            self._client_open = False
            self._loop.call_soon(self._gone, "closed by client")
            self._loop.call_soon(self._client.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        """Whether the connection has ended, on either side."""
        return not self._client_open

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Nothing is known of a connection through memory."""
        return default

    # what travels

    def _arrive(self, data: bytes) -> None:
        if not self._reading:
            self._backlog.append(data)
        elif self._connection is not None:
            self._engine.receive(self._connection, data, self._loop.time())
            self._driver.settle()

    def _gone(self, how: str) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._engine.lost(connection, self._loop.time(), how)
            self._driver.settle()

    def _deliver(self, data: bytes) -> None:
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

    def _set_reading(self, reading: bool) -> None:
        self._reading = reading
        if reading:
            backlog, self._backlog = self._backlog, []
            for data in backlog:
                self._loop.call_soon(self._arrive, data)


class _BrokerEnd:
    def __init__(self, link: MemoryLink) -> None:
        self._link = link

    def write(self, units: list[Any]) -> None:
        self._link._loop.call_soon(self._link._deliver, b"".join(units))

    def hang_up(self, how: HangUp) -> None:
        self._link._loop.call_soon(self._link._end, how)

    def stop_reading(self) -> None:
        self._link._set_reading(False)

    def resume_reading(self) -> None:
        self._link._set_reading(True)
