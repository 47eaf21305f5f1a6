"""Where the reference client gets its sockets: from libzmq, or from a fake in memory."""

from __future__ import annotations

import asyncio
import time
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

KINDS = {"DEALER": zmq.DEALER, "ROUTER": zmq.ROUTER, "REQ": zmq.REQ, "REP": zmq.REP}


class Socket(Protocol):
    """A connected ZeroMQ socket, or what stands in for one."""

    def send(self, *parts: bytes) -> None:
        """Send a message; never blocks."""

    def close(self) -> None:
        """End it; what was sent may still leave."""


class Network(Protocol):
    """Gives sockets, and the wall clock of the same world."""

    def connect(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> Socket:
        """A socket that is being connected, in the background and for ever; as ZeroMQ has it."""

    def wall(self) -> float:
        """Seconds since 1970."""


class ZmqSocket:
    """A socket of libzmq on the running loop.

    Args:
        linger_ms: How long what was sent may keep it after `close`; -1: for ever.
    """

    def __init__(self, endpoint: str, kind: str, on_message: OnMessage, linger_ms: int = LINGER_MS) -> None:
        self._linger_ms = linger_ms
        self._on_message = on_message
        self._socket = zmq.asyncio.Context.instance().socket(KINDS[kind])
        self._socket.linger = linger_ms
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


class Sockets:
    """The real network."""

    def connect(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> Socket:
        return ZmqSocket(endpoint, kind, on_message)

    def wall(self) -> float:
        return time.time()


class Memory:
    """Fakes that were made with ``memory=True``, on the running loop and its virtual time."""

    def connect(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> Socket:
        try:
            return memory.connect(endpoint, kind, on_message)
        except UsageError as error:
            raise ClientError("connection", str(error)) from None

    def wall(self) -> float:
        return WALL_ON_VIRTUAL_TIME + asyncio.get_running_loop().time()
