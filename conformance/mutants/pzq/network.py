"""Where the reference client gets its sockets: from libzmq, or from a fake in memory."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import zmq
import zmq.asyncio

from conformance.mutants.pzq.errors import ClientError
from fakebrokers.errors import UsageError
from fakebrokers.pzq import memory
from fakebrokers.pzq.memory import SocketType
from fakebrokers.server import WALL_ON_VIRTUAL_TIME

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


class Network(ABC):
    """Gives sockets, and the wall clock of the same world.

    Attributes:
        wrong_by_s: By how much the wall clock is wrong.
        reconnect_ms: How long after a loss a socket connects again; -1: never.
    """

    wrong_by_s = 0.0
    reconnect_ms = 100

    @abstractmethod
    def connect(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> Socket:
        """A socket that is being connected, in the background and forever; as ZeroMQ has it."""

    def wall(self) -> float:
        """Seconds since 1970."""
        return self.true_wall() + self.wrong_by_s

    @abstractmethod
    def true_wall(self) -> float:
        """Seconds since 1970 as they are."""


class ZmqSocket:
    """A socket of libzmq on the running loop.

    Args:
        linger_ms: How long what was sent may keep it after `close`; -1: forever.
        reconnect_ms: See `Network`.
    """

    def __init__(
        self,
        endpoint: str,
        kind: str,
        on_message: OnMessage,
        linger_ms: int = LINGER_MS,
        reconnect_ms: int = Network.reconnect_ms,
    ) -> None:
        self._linger_ms = linger_ms
        self._on_message = on_message
        self._socket = zmq.asyncio.Context.instance().socket(KINDS[kind])
        self._socket.linger = linger_ms
        if kind != "ROUTER":  # which drops what is above the mark
            self._socket.sndhwm = WAITING_MAX
        self._socket.reconnect_ivl = reconnect_ms
        self._socket.connect(endpoint)
        self._sending: set[asyncio.Future[Any]] = set()
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
        self._socket.close(linger=self._linger_ms)


class Sockets(Network):
    """The real network."""

    def connect(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> Socket:
        return ZmqSocket(endpoint, kind, on_message, reconnect_ms=self.reconnect_ms)

    def true_wall(self) -> float:
        return time.time()


class Memory(Network):
    """Fakes that were made with ``memory=True``, on the running loop and its virtual time."""

    def connect(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> Socket:
        try:
            return memory.connect(endpoint, kind, on_message, self.reconnect_ms)
        except UsageError as error:
            raise ClientError("connection", str(error)) from None

    def true_wall(self) -> float:
        return WALL_ON_VIRTUAL_TIME + asyncio.get_running_loop().time()
