"""The parts of Narconi's reference client that speak HTTP and WebSocket, on aiohttp."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
from yarl import URL

from conformance.reference.kit import ClientError, Feed, Runtime
from conformance.reference.narconi.api import HttpApi
from conformance.reference.narconi.client import NarconiClient
from conformance.reference.narconi.http import Response
from conformance.reference.narconi.settings import Addresses, Settings
from conformance.reference.narconi.websocket import Message
from conformance.reference.narconi.websockets import WebSockets
from fakebrokers.narconi.websocket import BINARY, TEXT

CLOSE_WAIT_S = 2.0  #: for the server's Close frame
QUIET_S = 0.3  #: after the end was asked for, deliveries that are on the way come within this time

OnMessage = Callable[[Message], None]
Lost = Callable[[ClientError | None], None]


class Web:
    """aiohttp's session with one server."""

    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        network = runtime.network
        self._base = f"{'https' if network.tls else 'http'}://{settings.endpoint}"
        self.options: dict[str, Any] = {}
        if network.tls:
            self.options = {"ssl": network.tls, "server_hostname": network.server_name}
        self.session = aiohttp.ClientSession()

    def url(self, path: str) -> URL:
        """A path on the server, as it is."""
        return URL(self._base + path, encoded=True)


def problem(error: Exception, *, sent: bool) -> ClientError:
    """What aiohttp has raised. `sent`: the server may have done what it was asked for."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, aiohttp.WSServerHandshakeError) and error.status != 101:
        return ClientError("auth" if error.status == 401 else "refused", text, code=error.status)
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ClientResponseError):
        return ClientError("protocol", text, definite=not sent)
    if isinstance(error, ValueError) and not isinstance(error, aiohttp.ClientConnectionError):
        return ClientError("invalid", text)
    return ClientError(
        "connection", text, definite=not sent or isinstance(error, aiohttp.ClientConnectorError)
    )


class Api(HttpApi):
    """HTTP by aiohttp."""

    def __init__(self, runtime: Runtime, settings: Settings, addresses: Addresses) -> None:
        super().__init__(runtime, settings, addresses)
        self.web = Web(runtime, settings)

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        more: dict[str, Any] = {"headers": headers or {}, "data": body or None, **self.web.options}
        session, url = self.web.session, self.web.url(path)
        none = aiohttp.ClientTimeout(total=None)
        try:
            async with session.request(method, url, timeout=none, allow_redirects=False, **more) as response:
                content = await response.read()
        except (aiohttp.ClientError, ValueError) as error:
            raise problem(error, sent=True) from error
        return Response(response.status, list(response.headers.items()), content)


class Socket:
    """A WebSocket of aiohttp with the face of the reference client's."""

    def __init__(
        self, runtime: Runtime, target: str, protocol: str, on_message: OnMessage, on_lost: Lost
    ) -> None:
        self.target = target
        self.protocol = protocol
        self.ended = asyncio.Event()
        self._runtime = runtime
        self._on_message = on_message
        self._on_lost = on_lost
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._closing = False
        self._is_told = False
        self._out = Feed[tuple[int, bytes]](runtime, self._write)
        self._heard_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self._socket is not None and not self._socket.closed and not self._closing

    def begin(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """The server has accepted. Raises `ClientError` (closed) where nobody wants it any more."""
        self._socket = socket
        if self._closing:
            self.abort()
            raise ClientError("closed", "the session was closed", definite=True)
        self._runtime.tasks.spawn(self._read(socket))

    def send(self, opcode: int, payload: bytes) -> None:
        """Send one message. Raises `ClientError` (closed)."""
        if not self.is_open:
            raise ClientError("closed", "the WebSocket is closed", definite=True)
        self._out.put((opcode, payload))

    async def _write(self, message: tuple[int, bytes]) -> None:
        opcode, payload = message
        assert self._socket is not None
        try:
            if opcode == TEXT:
                await self._socket.send_str(payload.decode())
            else:
                await self._socket.send_bytes(payload)
        except (aiohttp.ClientError, OSError) as error:
            self._lost(problem(error, sent=True))

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        try:
            async for message in socket:
                if message.type is aiohttp.WSMsgType.ERROR:
                    break
                self._heard_at = asyncio.get_running_loop().time()
                if message.type is aiohttp.WSMsgType.TEXT:
                    self._on_message(Message(TEXT, message.data.encode()))
                else:
                    self._on_message(Message(BINARY, message.data))
        except ClientError as error:
            self._lost(error)
            await socket.close(code=1002)
        code = socket.close_code
        text = f"the WebSocket ended with code {code}"
        self._lost(ClientError("connection", text, code=code, definite=False))
        self.ended.set()

    def _lost(self, error: ClientError) -> None:
        self._out.abort()
        if not self._is_told:
            self._is_told = True
            wanted, self._closing = self._closing, True
            self._on_lost(None if wanted else error)

    def give_up(self, text: str) -> None:
        """The connection is good for nothing any more."""
        self._lost(ClientError("connection", text, definite=False))
        self.abort()

    async def barrier(self) -> None:
        """Returns when what was on the way has come: aiohttp shows no pongs."""
        loop = asyncio.get_running_loop()
        self._heard_at = loop.time()
        while loop.time() < self._heard_at + QUIET_S:
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        """Close properly."""
        if self.is_open and self._socket is not None:
            await self._out.drained()
            self._closing = True
            await self._socket.close()
        self._lost(ClientError("closed", "closed", definite=False))

    def abort(self) -> None:
        """Let aiohttp close it in the background."""
        self._closing = True
        self._out.abort()
        if self._socket is not None and not self._socket.closed:
            self._lost(ClientError("closed", "closed", definite=False))  # nothing more is heard of it
            self._closer = asyncio.get_running_loop().create_task(self._socket.close())


class Sockets(WebSockets):
    """WebSockets by aiohttp."""

    def __init__(self, runtime: Runtime, settings: Settings, addresses: Addresses) -> None:
        super().__init__(runtime, settings, addresses)
        self.web = Web(runtime, settings)

    def socket(
        self, queue: str, protocol: str, query: Mapping[str, str], on_message: OnMessage, on_lost: Lost
    ) -> Any:
        return Socket(self.runtime, self.target(queue, query), protocol, on_message, on_lost)

    async def open(self, socket: Any) -> None:
        opening = self.runtime.tasks.spawn(self._open(socket))
        try:
            socket.begin(await self.runtime.tasks.join(opening, definite=True))
        except BaseException:
            opening.cancel()
            socket.abort()
            raise

    async def _open(self, socket: Socket) -> aiohttp.ClientWebSocketResponse:
        try:
            made = await self.web.session.ws_connect(
                self.web.url(socket.target),
                protocols=(socket.protocol,),
                heartbeat=self.settings.keepalive_s,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_WAIT_S),
                **self.web.options,
            )
        except (aiohttp.ClientError, ValueError) as error:
            raise problem(error, sent=False) from error
        if made.protocol != socket.protocol:
            await made.close()
            raise ClientError("protocol", "the server did not take the sub-protocol", definite=True)
        return made


class Client(NarconiClient):
    """Ends aiohttp's sessions with its own."""

    async def close(self, timeout: float | None = None) -> None:
        await super().close(timeout)
        webs: list[Any] = [self.http, self.websockets]
        for one in webs:
            await one.web.session.close()
