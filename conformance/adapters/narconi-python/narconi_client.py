"""A client for Narconi on aiohttp, as somebody writes it who has read Narconi's document.

Publishing: one WebSocket per queue; confirms come in the order of the messages. Consuming: one WebSocket per
subscription. Nothing reconnects by itself, but the next publish opens a new WebSocket.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from aiohttp import ClientSession, ClientTimeout, ClientWebSocketResponse, WSMsgType
from yarl import URL

OnEnd = Callable[[str, Exception | None], None]

CUSTOM = "x-msg-x-"
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


def check_metadata(headers: Mapping[str, Any]) -> None:
    """The server keeps a content type and names with the prefix; everything else it drops in silence."""
    for name, value in headers.items():
        if name.lower() == "content-type":
            if not isinstance(value, str):
                raise ValueError("Content-Type has to be text")
        elif not name.lower().startswith(CUSTOM):
            raise ValueError(f"the name of metadata has to begin with {CUSTOM}: {name}")


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
        await confirmed

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
        """Say goodbye; open publishes end with `ConnectionClosed`."""
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
            await self._callback(await self._waiting.get())
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
        """Say goodbye; what is not acknowledged goes back to the queue."""
        self._closing = True
        await self.socket.close()
        for task in self._tasks:
            task.cancel()


class Narconi:
    """One project on one server.

    Args:
        base: Such as ``http://localhost:8080``.
        on_end: Told when a WebSocket ends by itself: a text, and the error that the server gave, if any.
    """

    def __init__(
        self,
        base: str,
        project: str,
        *,
        keepalive_s: float | None = None,
        on_end: OnEnd = lambda text, problem: None,
    ) -> None:
        self._root = f"{base}/v2/{quote(project, safe='')}/queues/"
        self._keepalive_s = keepalive_s
        self._on_end = on_end
        self._http = ClientSession()
        self._publishers: dict[str, Publisher] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._consumers: list[Consumer] = []

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._http.closed

    @property
    def pending(self) -> int:
        """Publishes without an outcome."""
        return sum(len(publisher.waiting) for publisher in self._publishers.values())

    def _url(self, queue: str, more: str = "") -> URL:
        return URL(self._root + quote(queue, safe="") + more, encoded=True)

    # HTTP

    async def _request(
        self, method: str, url: URL, timeout: float | None, wanted: tuple[int, ...], **more: Any
    ) -> tuple[int, Mapping[str, str], bytes]:
        total = ClientTimeout(total=timeout)
        async with self._http.request(method, url, timeout=total, allow_redirects=False, **more) as response:
            body = await response.read()
            if response.status in wanted:
                return response.status, response.headers, body
            raise NarconiError(response.status, _error_text(body) or response.reason or "")

    async def ensure_queue(self, queue: str, timeout: float | None = None) -> None:
        """Make a queue if there is none."""
        await self._request("PUT", self._url(queue), timeout, (201,))

    async def delete_queue(self, queue: str, timeout: float | None = None) -> None:
        """Delete a queue and what is in it."""
        await self._request("DELETE", self._url(queue), timeout, (204,))

    async def post(
        self, queue: str, body: bytes, headers: Mapping[str, Any], timeout: float | None = None
    ) -> None:
        """Publish one message over HTTP."""
        check_metadata(headers)
        texts = {name: v if isinstance(v, str) else json.dumps(v) for name, v in headers.items()}
        await self._request("POST", self._url(queue, "/messages"), timeout, (201,), data=body, headers=texts)

    async def take(self, queue: str, timeout: float | None = None) -> Message | None:
        """Consume one message over HTTP, or None."""
        url = self._url(queue, "/messages")
        status, headers, body = await self._request("DELETE", url, timeout, (200, 204))
        if status == 204:
            return None
        kept = {name.lower(): v for name, v in headers.items() if name.lower().startswith(CUSTOM)}
        kept["Content-Type"] = headers.get("Content-Type", "")
        flag, time = headers.get("x-msg-redelivered"), headers.get("x-msg-timestamp")
        return Message(body, kept, None if flag is None else flag == "true", int(time) if time else None)

    # WebSocket

    async def _open(self, url: URL, protocol: str) -> ClientWebSocketResponse:
        return await self._http.ws_connect(url, protocols=(protocol,), heartbeat=self._keepalive_s)

    async def publish(
        self, queue: str, body: bytes, headers: Mapping[str, Any], timeout: float | None = None
    ) -> None:
        """Publish one message over the WebSocket; returns with its confirm."""
        check_metadata(headers)
        async with asyncio.timeout(timeout):
            async with self._opening.setdefault(queue, asyncio.Lock()):
                publisher = self._publishers.get(queue)
                if publisher is None or not publisher.usable:
                    socket = await self._open(self._url(queue, "/messages"), "publish")
                    publisher = self._publishers[queue] = Publisher(socket, self._on_end)
            await publisher.publish(body, headers)

    async def consume(
        self,
        queue: str,
        callback: Callable[[Message], Awaitable[None]],
        *,
        ack: bool = False,
        limit: float | None = None,
        encoding: str | None = None,
        timeout: float | None = None,
    ) -> Consumer:
        """Consume over a WebSocket."""
        query = {"ack": "true" if ack else None, "limit": limit, "encoding": encoding}
        given = "&".join(f"{name}={value}" for name, value in query.items() if value is not None)
        url = self._url(queue, f"/messages?{given}" if given else "/messages")
        async with asyncio.timeout(timeout):
            socket = await self._open(url, "consume")
        consumer = Consumer(socket, encoding, callback, self._on_end)
        self._consumers.append(consumer)
        return consumer

    async def close(self, timeout: float = 10.0) -> None:
        """Wait for confirms for half of the time, then close everything."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout / 2
        while self.pending and loop.time() < until:
            await asyncio.sleep(0.01)
        everything: list[Publisher | Consumer] = [*self._publishers.values(), *self._consumers]
        closing = [asyncio.create_task(one.close()) for one in everything if not one.socket.closed]
        if closing:
            await asyncio.wait(closing, timeout=max(0.1, until + timeout / 2 - loop.time() - 0.5))
        await self._http.close()


def _error_text(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (KeyError, TypeError, ValueError):
        return body.decode(errors="replace")[:200]
