"""The two kinds of WebSocket of Narconi: one that publishes, one that consumes."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from aiohttp import ClientWebSocketResponse, WSMsgType

log = logging.getLogger(__name__)

OnEnd = Callable[[str, Exception | None], None]

DRAIN_QUIET_S = 0.3  #: after the end was asked for, deliveries that are on the way come within this time


class NarconiError(Exception):
    """The server said no."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class ProtocolError(Exception):
    """The server sent something that has no meaning."""


class ConnectionClosed(Exception):
    """A WebSocket is closed. `sent`: something may have been sent."""

    def __init__(self, text: str, *, sent: bool = True) -> None:
        super().__init__(text)
        self.sent = sent


class Message(NamedTuple):
    """`ack_id` is None where the server takes it for acknowledged."""

    body: bytes
    headers: dict[str, Any]
    redelivered: bool | None
    timestamp: int | None
    ack_id: str | None = None


def error_of(text: str) -> NarconiError | None:
    """The error object in a message, if it is one."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if isinstance(value, dict) and isinstance(value.get("code"), int):
        return NarconiError(value["code"], str(value.get("error") or ""))
    return None


class Publisher:
    """A publishing WebSocket."""

    def __init__(
        self, socket: ClientWebSocketResponse, on_end: Callable[[str, Exception | None], None]
    ) -> None:
        self.socket = socket
        self.usable = True
        self.waiting: deque[asyncio.Future[None]] = deque()
        self._on_end = on_end
        self._pair = asyncio.Lock()
        self._closing = False
        self._reader = asyncio.create_task(self._read())

    async def publish(self, body: bytes, headers: Mapping[str, Any]) -> None:
        """Send metadata and body, wait for the confirm."""
        confirmed = asyncio.get_running_loop().create_future()
        async with self._pair:
            if not self.usable:
                raise ConnectionClosed("the WebSocket is closed", sent=False)
            self.waiting.append(confirmed)
            await self.socket.send_str(json.dumps(headers))
            await self.socket.send_bytes(body)
        try:
            await confirmed
        except asyncio.CancelledError:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Nobody waits any more for a confirm: when it comes late it looks like that of the next message."""
        self.usable = False
        self._closer = asyncio.create_task(self.socket.close())

    async def _read(self) -> None:
        problem: Exception | None = None
        async for message in self.socket:
            if message.type is WSMsgType.ERROR:
                break
            if not message.data:
                self._settle(None)
                continue
            problem = error_of(message.data) if message.type is WSMsgType.TEXT else None
            if problem is None:
                problem = ProtocolError(f"neither a confirm nor an error: {message.data!r:.60}")
                break
            self.usable = False  # the server closes behind an error
            if self.waiting:
                self._settle(problem)
                problem = None
        self._end(problem)
        if isinstance(problem, ProtocolError):
            await self.socket.close(code=1002)

    def _settle(self, problem: Exception | None) -> None:
        confirmed = self.waiting.popleft() if self.waiting else None
        if confirmed is None or confirmed.done():
            return
        if problem is None:
            confirmed.set_result(None)
        else:
            confirmed.set_exception(problem)

    def _end(self, problem: Exception | None) -> None:
        self.usable = False
        text = f"the WebSocket ended with code {self.socket.close_code}"
        while self.waiting:
            self._settle(problem if isinstance(problem, ProtocolError) else ConnectionClosed(text))
        if not self._closing:
            self._on_end(text, problem)

    async def close(self) -> None:
        """Close properly; open publishes end with `ConnectionClosed`."""
        self._closing = True
        await self.socket.close()
        await self._reader


class Consumer:
    """A consuming WebSocket. The callback gets one message after the other."""

    def __init__(
        self,
        socket: ClientWebSocketResponse,
        encoding: str | None,
        callback: Callable[[Message], Awaitable[None]],
        on_end: OnEnd,
    ) -> None:
        self.socket = socket
        self.open_acks: list[str] = []
        self._encoding = encoding
        self._callback = callback
        self._on_end = on_end
        self._closing = False
        self._waiting: asyncio.Queue[Message] = asyncio.Queue()
        self._last = 0.0
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._feed())]

    async def _read(self) -> None:
        metadata: dict[str, Any] | None = None
        problem: Exception | None = None
        async for message in self.socket:
            if message.type is WSMsgType.ERROR:
                break
            self._last = asyncio.get_running_loop().time()
            if metadata is not None:
                body = message.data if isinstance(message.data, bytes) else message.data.encode()
                self._take(metadata, body)
                metadata = None
                continue
            if message.type is WSMsgType.TEXT and (problem := error_of(message.data)):
                break
            try:
                metadata = dict(json.loads(message.data))
                if self._encoding:
                    self._take(metadata, self._decode(metadata.pop("message")))
                    metadata = None
            except (KeyError, TypeError, ValueError) as error:
                problem = ProtocolError(f"no metadata: {error}")
                break
        if not self._closing:
            if problem is not None:
                await self.socket.close(code=1002 if isinstance(problem, ProtocolError) else 1000)
            self._on_end(f"the WebSocket ended with code {self.socket.close_code}", problem)

    def _decode(self, text: str) -> bytes:
        if self._encoding == "base64":
            return base64.b64decode(text)
        return bytes.fromhex(text) if self._encoding == "hex" else text.encode()

    def _take(self, metadata: dict[str, Any], body: bytes) -> None:
        ack_id = metadata.pop("ackId", None)
        if ack_id is not None:
            self.open_acks.append(ack_id)
        flag, time = metadata.pop("redelivered", None), metadata.pop("timestamp", None)
        self._waiting.put_nowait(Message(body, metadata, flag, time, ack_id))

    async def _feed(self) -> None:
        while True:
            message = await self._waiting.get()
            try:
                await self._callback(message)
            except Exception:
                log.exception("the callback failed")
            self._waiting.task_done()

    async def ack(self, ack_id: str, *, up_to: bool = False) -> None:
        """Acknowledge one message, or all up to it; once."""
        if self.socket.closed:
            raise ConnectionClosed("the WebSocket is closed", sent=False)
        if ack_id not in self.open_acks:
            raise ValueError("this message waits for no acknowledgement")
        if up_to:
            del self.open_acks[: self.open_acks.index(ack_id) + 1]
        else:
            self.open_acks.remove(ack_id)
        await self.socket.send_str(json.dumps({"ackToId" if up_to else "ackId": ack_id}))

    async def drain(self) -> None:
        """The graceful end: ask for no more, wait until what came is processed and acknowledged."""
        loop = asyncio.get_running_loop()
        self._last = loop.time()
        await self.socket.send_str("")
        while loop.time() < self._last + DRAIN_QUIET_S or (self.open_acks and not self.socket.closed):
            await asyncio.sleep(0.02)
        await self._waiting.join()

    async def close(self) -> None:
        """Close properly; what is not acknowledged goes back to the queue."""
        self._closing = True
        await self.socket.close()
        for task in self._tasks:
            task.cancel()
