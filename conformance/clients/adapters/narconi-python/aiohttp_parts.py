"""The parts of Narconi's reference client that speak HTTP and WebSocket, on aiohttp."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
from yarl import URL

from conformance.clients.adapters._narconi.library_sockets import CLOSE_WAIT_S, LibrarySocket, LibrarySockets
from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.http import Response
from conformance.clients.reference.narconi.settings import Addresses, Settings
from conformance.clients.reference.narconi.websocket import Message
from fakebrokers.narconi.websocket import BINARY, TEXT


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


class Socket(LibrarySocket):
    """A WebSocket of aiohttp."""

    library_socket: aiohttp.ClientWebSocketResponse

    @property
    def is_up(self) -> bool:
        return not self.library_socket.closed

    @property
    def close_code(self) -> int | None:
        return self.library_socket.close_code

    async def send_one(self, opcode: int, payload: bytes) -> None:
        try:
            if opcode == TEXT:
                await self.library_socket.send_str(payload.decode())
            else:
                await self.library_socket.send_bytes(payload)
        except (aiohttp.ClientError, OSError) as error:
            raise problem(error, sent=True) from error

    async def messages(self) -> AsyncIterator[Message]:
        async for message in self.library_socket:
            if message.type is aiohttp.WSMsgType.ERROR:
                return
            is_text = message.type is aiohttp.WSMsgType.TEXT
            yield (Message(TEXT, message.data.encode()) if is_text else Message(BINARY, message.data))

    async def end(self, code: int) -> None:
        await self.library_socket.close(code=code)


#: Before 3.11 the time-out of a close is a number.
CLOSES_WITHIN: Any = CLOSE_WAIT_S
if hasattr(aiohttp, "ClientWSTimeout"):
    CLOSES_WITHIN = aiohttp.ClientWSTimeout(ws_close=CLOSE_WAIT_S)


class Sockets(LibrarySockets):
    """WebSockets by aiohttp."""

    socket_class = Socket

    def __init__(self, runtime: Runtime, settings: Settings, addresses: Addresses) -> None:
        super().__init__(runtime, settings, addresses)
        self.web = Web(runtime, settings)

    async def dial(self, target: str, protocol: str) -> tuple[Any, str | None]:
        try:
            made = await self.web.session.ws_connect(
                self.web.url(target),
                protocols=(protocol,),
                heartbeat=self.settings.keepalive_s,
                timeout=CLOSES_WITHIN,
                **self.web.options,
            )
        except (aiohttp.ClientError, ValueError) as error:
            raise problem(error, sent=False) from error
        return made, made.protocol


class Client(NarconiClient):
    """Ends aiohttp's sessions with its own."""

    async def close(self, timeout: float | None = None) -> None:
        await super().close(timeout)
        webs: list[Any] = [self.http, self.websockets]
        for one in webs:
            await one.web.session.close()
