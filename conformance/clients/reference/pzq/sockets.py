"""Where the client gets its sockets: from libzmq, or from a fake in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import zmq
from zmq.asyncio import Context

from conformance.clients.reference.kit import ClientError, Network
from conformance.clients.reference.kit.ordered import OrderedSet
from fakebrokers.errors import UsageError
from fakebrokers.pzq import memory
from fakebrokers.pzq.memory import SocketType

Parts = tuple[bytes, ...]
OnMessage = Callable[[Parts], None]

LINGER_MS = 1000  #: how long messages that were sent outlive their socket
WAITING_MAX = 100  #: messages that libzmq keeps while the broker is away or slow

KINDS = {"DEALER": zmq.DEALER, "ROUTER": zmq.ROUTER, "REQ": zmq.REQ, "REP": zmq.REP}


class Socket(Protocol):
    """A connected ZeroMQ socket, or what stands in for one."""

    def send(self, *parts: bytes) -> None:
        """Send a message; never blocks."""

    def close(self) -> None:
        """End it; what was sent may still leave."""


class Connector:
    """Gives sockets that connect in the background and forever, as ZeroMQ has it.

    Attributes:
        reconnect_ms: How long after a loss a socket connects again; -1: never.
    """

    reconnect_ms = 100

    def __init__(self, network: Network) -> None:
        self._network = network

    def connect(self, endpoint: str | Sequence[str], kind: SocketType, on_message: OnMessage) -> Socket:
        """A socket that is being connected. Raises `ClientError` if there is no such fake in memory.

        Args:
            endpoint: Several are for a ROUTER, which knows to whom it sends.
        """
        endpoints = [endpoint] if isinstance(endpoint, str) else endpoint
        if not self._network.is_memory:
            return self.over_sockets(endpoints, kind, on_message)
        try:
            return joined([self.in_memory(each, kind, on_message) for each in endpoints])
        except UsageError as error:
            raise ClientError("connection", str(error)) from None

    def in_memory(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> Socket:
        """A socket that is being connected to a fake in memory. Raises `UsageError` if there is none."""
        return memory.connect(endpoint, kind, on_message, self.reconnect_ms)

    def over_sockets(self, endpoints: Sequence[str], kind: SocketType, on_message: OnMessage) -> Socket:
        """The same for servers at real sockets."""
        return ZmqSocket(endpoints, kind, on_message, self.reconnect_ms)


def joined(sockets: Sequence[Socket]) -> Socket:
    """Sockets with one peer each as one ROUTER."""
    return sockets[0] if len(sockets) == 1 else _Joined(sockets)


class _Joined:
    """See `joined`. Each socket drops what its first part does not address to its peer."""

    def __init__(self, sockets: Sequence[Socket]) -> None:
        self._sockets = sockets

    def send(self, *parts: bytes) -> None:
        for each in self._sockets:
            each.send(*parts)

    def close(self) -> None:
        for each in self._sockets:
            each.close()


class ZmqSocket:
    """A socket of libzmq on the running loop.

    Args:
        reconnect_ms: See `Connector`.
    """

    def __init__(
        self, endpoints: Sequence[str], kind: SocketType, on_message: OnMessage, reconnect_ms: int
    ) -> None:
        self._on_message = on_message
        self._socket = Context.instance().socket(KINDS[kind])
        self._socket.linger = LINGER_MS
        if kind != "ROUTER":  # which drops what is above the mark
            self._socket.sndhwm = WAITING_MAX
        self._socket.reconnect_ivl = reconnect_ms
        for each in endpoints:
            self._socket.connect(each)
        self._sending: OrderedSet[asyncio.Future[Any]] = OrderedSet()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        while True:
            self._on_message(tuple(await self._socket.recv_multipart()))

    def send(self, *parts: bytes) -> None:
        sending = asyncio.ensure_future(self._socket.send_multipart(parts))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    def close(self) -> None:
        self._reading.cancel()
        self._socket.close(linger=LINGER_MS)
