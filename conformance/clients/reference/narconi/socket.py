"""One WebSocket of the client: the upgrade, messages, pings and the closing handshake."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress

from conformance.clients.reference.kit import ClientError, Runtime, Wire
from conformance.clients.reference.narconi.http import Response, ResponseReader, encode_request
from conformance.clients.reference.narconi.websocket import BadFrame, Message, MessageReader, encode
from fakebrokers.narconi.websocket import CLOSE, PING, PONG, accept_key

CLOSE_WAIT_S = 2.0  #: for the server's Close frame


class Socket(asyncio.Protocol):
    """Opens as soon as it has a wire.

    Args:
        target: Path and query.
        host: For the header.
        protocol: ``publish`` or ``consume``.
        on_message: Takes text and binary messages; a `ClientError` from it ends the connection.
        on_lost: Called once when an open connection ends; None if this side wanted it so.
        keepalive_s: Time between pings, and the longest wait for a pong; None: no pings.

    Attributes:
        opened: Done when the server has accepted.
        ended: Set when the TCP connection is gone.
    """

    def __init__(
        self,
        runtime: Runtime,
        target: str,
        host: str,
        protocol: str,
        on_message: Callable[[Message], None],
        on_lost: Callable[[ClientError | None], None],
        *,
        keepalive_s: float | None,
    ) -> None:
        self.protocol = protocol
        self.wire: Wire | None = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        self._on_message = on_message
        self._on_lost = on_lost
        self._keepalive_s = keepalive_s
        self._random = runtime.random
        self._key = b64encode(runtime.random.randbytes(16)).decode()
        self._request = encode_request("GET", target, host, self.upgrade_headers())
        self._response = ResponseReader("GET")
        self._reader = runtime.part(MessageReader)()
        self._is_open = False
        self._closing = False
        self._barriers: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None

    def upgrade_headers(self) -> list[tuple[str, str]]:
        """The headers of the upgrade; the server wants one sub-protocol, no list.

        See docs/protocols/narconi.md, "Handshake".
        """
        return [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", self._key),
            ("Sec-WebSocket-Protocol", self.protocol),
        ]

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self._is_open and not self._closing

    # out

    def begin(self, wire: Wire) -> None:
        """Ask for the upgrade, unless nobody wants it any more."""
        self.wire = wire
        if self._closing:
            wire.abort()
        else:
            wire.write(self._request)

    def send(self, opcode: int, payload: bytes) -> None:
        """Send one message. Raises `ClientError` (closed) where nothing can be sent any more."""
        if not self.is_open:
            raise ClientError("closed", "the WebSocket is closed", definite=True)
        self.write(opcode, payload)

    def write(self, opcode: int, payload: bytes) -> None:
        """Write a frame, whatever the state."""
        assert self.wire is not None
        self.wire.write(encode(opcode, payload, self._random))

    async def barrier(self) -> None:
        """Returns when the server has answered a ping: all that it had sent before has arrived."""
        barrier: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._barriers.append(barrier)
        self.write(PING, b"barrier")
        await barrier

    async def close(self) -> None:
        """Send a Close frame, and wait a little for the server's."""
        if self.is_open:
            self._closing = True
            self.write(CLOSE, (1000).to_bytes(2, "big"))
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), self.close_wait_s())
        self.abort()

    def close_wait_s(self) -> float | None:
        """How long to wait for the server's Close frame."""
        return CLOSE_WAIT_S

    def abort(self) -> None:
        """Drop the socket without a Close frame."""
        self._closing = True
        if self.wire is not None:
            self.wire.abort()

    # in

    def data_received(self, data: bytes) -> None:
        if not self._is_open:
            if self.opened.done():
                return
            response = self._handshake(lambda: self._response.feed(data))
            if response is None:
                return
            data = self._response.rest
        if data:
            self._frames(data)

    def _frames(self, data: bytes) -> None:
        try:
            self._messages(self._reader.feed(data))
        except BadFrame as error:
            self._messages(error.before)
            self.fail(error, error.close_code)

    def _messages(self, messages: list[Message]) -> None:
        """What has come, up to the server's Close frame: nothing after it counts (RFC 6455, 5.5.1)."""
        try:
            for message in messages:
                if not self._is_open:
                    return
                self.message(message)
        except ClientError as error:
            self.fail(error, 1002)

    def message(self, message: Message) -> None:
        """A message or a control frame."""
        if message.opcode == PING:
            self.write(PONG, message.payload)
        elif message.opcode == PONG:
            self.ponged()
        elif message.opcode == CLOSE:
            self.closed_by_server(message.payload)
        else:
            self._on_message(message)

    def ponged(self) -> None:
        """The server lives."""
        barriers, self._barriers = self._barriers, []
        for barrier in barriers:
            if not barrier.done():
                barrier.set_result(None)
        self._schedule_ping()

    def closed_by_server(self, payload: bytes) -> None:
        """The server sends a Close frame, or answers ours. Raises `ClientError` for half a code."""
        if len(payload) == 1:
            raise ClientError("protocol", "a Close frame with one byte of a code")
        if not self._closing:
            self.write(CLOSE, payload[:2])
        code = int.from_bytes(payload[:2], "big") if payload else None
        text = (
            f"the server closed the connection (code {code}) {payload[2:].decode(errors='replace')}".rstrip()
        )
        self._lost(text, ClientError("connection", text, code=code))
        if self.wire is not None:
            self.wire.close()

    def fail(self, error: ClientError, close_code: int) -> None:
        """End the connection because of what the server sent."""
        if self._is_open and not self._closing:
            self.write(CLOSE, close_code.to_bytes(2, "big"))
        self._lost(error.text, error)
        if self.wire is not None:
            self.wire.close()

    # the upgrade

    def _handshake(self, read: Callable[[], Response | None]) -> Response | None:
        """Read more of the server's answer; returns it once it is an acceptance."""
        try:
            response = read()
            if response is None:
                return None
            self.check(response)
        except ClientError as error:
            self.opened.set_exception(error)
            self.abort()
            return None
        self._is_open = True
        self.opened.set_result(None)
        self._schedule_ping()
        return response

    def check(self, response: Response) -> None:
        """Raise `ClientError` for what is no acceptance."""
        if response.status != 101:
            kind = "auth" if response.status == 401 else "refused"
            text = f"the upgrade was refused with status {response.status}"
            raise ClientError(kind, text, code=response.status)
        options = [option.strip() for option in (response.header("connection") or "").lower().split(",")]
        if (response.header("upgrade") or "").lower() != "websocket" or "upgrade" not in options:
            raise ClientError("protocol", "the server has switched to no WebSocket", definite=True)
        if response.header("sec-websocket-accept") != accept_key(self._key):
            raise ClientError("protocol", "Sec-WebSocket-Accept is wrong", definite=True)
        if response.header("sec-websocket-protocol") != self.protocol:
            raise ClientError("protocol", "the server did not take the sub-protocol", definite=True)

    # pings

    def _schedule_ping(self) -> None:
        if self._keepalive_s is not None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(self._keepalive_s, self._ping)

    def _ping(self) -> None:
        self.write(PING, b"")
        self._timer = asyncio.get_running_loop().call_later(self.pong_wait_s(), self.unanswered)

    def pong_wait_s(self) -> float:
        """How long a pong may take."""
        assert self._keepalive_s is not None
        return self._keepalive_s

    def unanswered(self) -> None:
        """No pong came."""
        self.give_up("the server does not answer pings")

    def give_up(self, text: str) -> None:
        """The connection is good for nothing any more."""
        self._lost(text)
        self.abort()

    # the end

    def eof_received(self) -> bool | None:
        self._over("the server ended the connection")
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._over(str(exc or "the connection is closed"))
        self.ended.set()

    def _over(self, text: str) -> None:
        if not self.opened.done():
            self._handshake(self._response.end)
            if not self.opened.done():
                self.opened.set_exception(ClientError("connection", text, definite=True))
        self._lost(text)

    def _lost(self, text: str, error: ClientError | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for barrier in self._barriers:
            if not barrier.done():
                barrier.set_result(None)  # nothing more can arrive
        if self._is_open:
            wanted, self._is_open, self._closing = self._closing, False, True
            end = error or ClientError("connection", text)
            self._on_lost(None if wanted else end)
