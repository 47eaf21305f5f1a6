"""Transports of datagrams; to protocols they are those of asyncio."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from fakebrokers.simulation.ends import Address
from fakebrokers.simulation.hosts import Box, Process
from fakebrokers.simulation.turns import TurningLoop


class SimulatedDatagramTransport(asyncio.DatagramTransport, Box):
    """A port that takes datagrams; implements `hosts.Closable` and `hosts.Box`."""

    def __init__(
        self,
        loop: TurningLoop,
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
