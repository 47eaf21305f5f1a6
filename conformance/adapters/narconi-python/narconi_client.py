"""A client for Narconi on aiohttp, as somebody writes it who has read Narconi's document.

Publishing: one WebSocket per queue; confirms come in the order of the messages. Consuming: one WebSocket per
subscription. Nothing reconnects by itself, but the next publish opens a new WebSocket.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from ssl import SSLContext
from typing import Any
from urllib.parse import quote

from aiohttp import ClientSession, ClientTimeout, ClientWebSocketResponse
from narconi_sockets import ConnectionClosed, Consumer, Message, NarconiError, OnEnd, Publisher
from yarl import URL

CUSTOM = "x-msg-x-"


def check_metadata(headers: Mapping[str, Any]) -> None:
    """The server keeps a content type and names with the prefix; everything else it drops in silence."""
    for name, value in headers.items():
        if name.lower() == "content-type":
            if not isinstance(value, str):
                raise ValueError("Content-Type has to be text")
        elif not name.lower().startswith(CUSTOM):
            raise ValueError(f"the name of metadata has to begin with {CUSTOM}: {name}")


class Narconi:
    """One project on one server.

    Args:
        base: Such as ``http://localhost:8080``.
        tls: For https and wss; `server_name` is what the certificate has to show, if it is not the host.
        on_end: Told when a WebSocket ends by itself: a text, and the error that the server gave, if any.
    """

    def __init__(
        self,
        base: str,
        project: str,
        *,
        keepalive_s: float | None = None,
        tls: SSLContext | None = None,
        server_name: str | None = None,
        on_end: OnEnd = lambda text, problem: None,
    ) -> None:
        self._root = f"{base}/v2/{quote(project, safe='')}/queues/"
        self._keepalive_s = keepalive_s
        self._on_end = on_end
        self._http = ClientSession()
        self._tls: dict[str, Any] = {"ssl": tls, "server_hostname": server_name} if tls else {}
        self._publishers: dict[str, Publisher] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._unopened: set[asyncio.Task[ClientWebSocketResponse]] = set()
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
        more |= self._tls
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
        work = self._http.ws_connect(url, protocols=(protocol,), heartbeat=self._keepalive_s, **self._tls)
        opening = asyncio.create_task(work)
        self._unopened.add(opening)
        try:
            return await opening
        except asyncio.CancelledError:
            if self.closed:
                raise ConnectionClosed("the session was closed", sent=False) from None
            raise
        finally:
            self._unopened.discard(opening)

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
        for opening in self._unopened:
            opening.cancel()  # aiohttp connects once more when `ClientSession.close` ends the connection
        await self._http.close()


def _error_text(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (KeyError, TypeError, ValueError):
        return body.decode(errors="replace")[:200]
