"""The parts of Narconi's reference client that speak WebSocket, on websockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from inspect import signature
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.protocol import State

from conformance.clients.adapters._narconi.library_sockets import CLOSE_WAIT_S, LibrarySocket, LibrarySockets
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.narconi.websocket import Message
from fakebrokers.narconi.websocket import BINARY, TEXT

#: A proxy of the environment has no part in tests; before 15.0 the library asks for none.
NO_PROXY = {"proxy": None} if "proxy" in signature(connect.__init__).parameters else {}
#: Before 14.0 it does not take the bytes of a text.
TAKES_TEXT = "text" in signature(ClientConnection.send).parameters


def problem(error: Exception) -> ClientError:
    """Why websockets could not open one: nothing was published on it yet."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        return ClientError("auth" if status == 401 else "refused", text, code=status)
    if isinstance(error, InvalidHandshake):
        kind = "connection" if isinstance(error.__cause__, EOFError) else "protocol"
        return ClientError(kind, text, definite=True)
    kind = "connection" if isinstance(error, OSError) else "invalid"  # a certificate is both
    return ClientError(kind, text, definite=True)


class Socket(LibrarySocket):
    """A WebSocket of websockets."""

    library_socket: ClientConnection

    @property
    def is_up(self) -> bool:
        return self.library_socket.state is State.OPEN

    @property
    def close_code(self) -> int | None:
        return self.library_socket.protocol.close_code  # the connection itself has it from 14.1 on

    async def send_one(self, opcode: int, payload: bytes) -> None:
        try:
            if TAKES_TEXT:
                await self.library_socket.send(payload, text=opcode == TEXT)
            else:
                await self.library_socket.send(payload.decode() if opcode == TEXT else payload)
        except ConnectionClosed as error:
            raise ClientError("connection", str(error), code=self.close_code, definite=False) from error

    async def messages(self) -> AsyncIterator[Message]:
        with suppress(ConnectionClosed):
            async for message in self.library_socket:
                is_text = isinstance(message, str)
                yield Message(TEXT, message.encode()) if is_text else Message(BINARY, message)

    async def end(self, code: int) -> None:
        await self.library_socket.close(code)

    async def barrier(self) -> None:
        """Returns when the server has answered a ping: all that it had sent before has arrived."""
        with suppress(ConnectionClosed):
            await (await self.library_socket.ping())


class Sockets(LibrarySockets):
    """WebSockets by websockets."""

    socket_class = Socket

    async def dial(self, target: str, protocol: str) -> tuple[Any, str | None]:
        network = self.runtime.network
        options: dict[str, Any] = dict(NO_PROXY)
        if network.tls:
            options["ssl"] = network.tls
            if network.server_name:
                options["server_hostname"] = network.server_name
        keepalive_s = self.settings.keepalive_s
        try:
            made = await connect(
                f"{'wss' if network.tls else 'ws'}://{self.settings.endpoint}{target}",
                subprotocols=[protocol],
                ping_interval=keepalive_s,
                ping_timeout=keepalive_s,
                open_timeout=None,  # the adapter has its own
                close_timeout=CLOSE_WAIT_S,
                **options,
            )
        except (InvalidHandshake, OSError, ValueError) as error:
            raise problem(error) from error
        return made, made.subprotocol
