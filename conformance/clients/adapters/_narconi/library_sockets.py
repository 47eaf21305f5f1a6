"""WebSockets of a library in Python, where the reference client has its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from conformance.clients.reference.kit import ClientError, Feed, Runtime
from conformance.clients.reference.narconi.websocket import Message
from conformance.clients.reference.narconi.websockets import WebSockets

CLOSE_WAIT_S = 2.0  #: for the server's Close frame
QUIET_S = 0.3  #: after the end was asked for, deliveries that are on the way come within this time

OnMessage = Callable[[Message], None]
Lost = Callable[[ClientError | None], None]


class LibrarySocket:
    """A WebSocket of a library with the face of the reference client's.

    What differs between libraries is a method that raises `NotImplementedError` here.
    """

    def __init__(
        self, runtime: Runtime, target: str, protocol: str, on_message: OnMessage, on_lost: Lost
    ) -> None:
        self.target = target
        self.protocol = protocol
        self.ended = asyncio.Event()
        self.library_socket: Any = None
        self._runtime = runtime
        self._on_message = on_message
        self._on_lost = on_lost
        self._closing = False
        self._is_reported = False
        self._out = Feed[tuple[int, bytes]](runtime.feeds, self._write)
        self._heard_at = 0.0

    # what each library has its own words for

    @property
    def is_up(self) -> bool:
        """Whether the library would send; asked once there is a `library_socket`."""
        raise NotImplementedError

    @property
    def close_code(self) -> int | None:
        """With which code it has ended."""
        raise NotImplementedError

    async def send_one(self, opcode: int, payload: bytes) -> None:
        """Send one message. Raises `ClientError` (connection)."""
        raise NotImplementedError

    def messages(self) -> AsyncIterator[Message]:
        """What comes, until the end, whatever that is."""
        raise NotImplementedError

    async def end(self, code: int) -> None:
        """Close with that code; returns when it is gone."""
        raise NotImplementedError

    async def barrier(self) -> None:
        """Returns when what was on the way has come, as far as a library without pongs can know."""
        loop = asyncio.get_running_loop()
        self._heard_at = loop.time()
        while loop.time() < self._heard_at + QUIET_S:
            await asyncio.sleep(0.02)

    # the face

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self.library_socket is not None and self.is_up and not self._closing

    def begin(self, library_socket: Any) -> None:
        """The server has accepted. Raises `ClientError` (closed) where nobody wants it any more."""
        self.library_socket = library_socket
        if self._closing:
            self.abort()
            raise ClientError("closed", "the session was closed", definite=True)
        self._runtime.tasks.spawn(self._read())

    def send(self, opcode: int, payload: bytes) -> None:
        """Send one message. Raises `ClientError` (closed)."""
        if not self.is_open:
            raise ClientError("closed", "the WebSocket is closed", definite=True)
        self._out.put((opcode, payload))

    async def _write(self, message: tuple[int, bytes]) -> None:
        try:
            await self.send_one(*message)
        except ClientError as error:
            self._lost(error)

    async def _read(self) -> None:
        try:
            async for message in self.messages():
                self._heard_at = asyncio.get_running_loop().time()
                self._on_message(message)
        except ClientError as error:
            self._lost(error)
            await self.end(1002)
        code = self.close_code
        text = f"the WebSocket ended with code {code}"
        self._lost(ClientError("connection", text, code=code, definite=False))
        self.ended.set()

    def _lost(self, error: ClientError) -> None:
        self._out.abort()
        if not self._is_reported:
            self._is_reported = True
            wanted, self._closing = self._closing, True
            self._on_lost(None if wanted else error)

    def give_up(self, text: str) -> None:
        """The connection is good for nothing any more."""
        self._lost(ClientError("connection", text, definite=False))
        self.abort()

    async def close(self) -> None:
        """Close properly."""
        if self.is_open:
            await self._out.drained()
            self._closing = True
            await self.end(1000)
        self._lost(ClientError("closed", "closed", definite=False))

    def abort(self) -> None:
        """Let the library close it in the background."""
        self._closing = True
        self._out.abort()
        if self.library_socket is not None and self.is_up:
            self._lost(ClientError("closed", "closed", definite=False))  # nothing more is heard of it
            self._closer = asyncio.get_running_loop().create_task(self.end(1000))


class LibrarySockets(WebSockets):
    """Opens the WebSockets of a library.

    Attributes:
        socket_class: A `LibrarySocket`.
    """

    socket_class: type[LibrarySocket]

    def socket(
        self, queue: str, protocol: str, query: Mapping[str, str], on_message: OnMessage, on_lost: Lost
    ) -> Any:
        return self.socket_class(self.runtime, self.target(queue, query), protocol, on_message, on_lost)

    async def dial(self, target: str, protocol: str) -> tuple[Any, str | None]:
        """The library's WebSocket, and the sub-protocol that the server has taken. Raises `ClientError`."""
        raise NotImplementedError

    async def open(self, socket: Any) -> None:
        opening = self.runtime.tasks.spawn(self._open(socket))
        try:
            socket.begin(await self.runtime.tasks.join(opening, definite=True))
        except BaseException:
            opening.cancel()
            socket.abort()
            raise

    async def _open(self, socket: LibrarySocket) -> Any:
        made, protocol = await self.dial(socket.target, socket.protocol)
        if protocol != socket.protocol:
            socket.library_socket = made  # for the code that aborts it
            raise ClientError("protocol", "the server did not take the sub-protocol", definite=True)
        return made
