"""The reference client of Narconi: correct, small, and made of parts that mutants replace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from conformance.mutants.narconi.base import OPEN_TIMEOUT_S, ClientBase, Settings
from conformance.mutants.narconi.channels import Callback, Publishing, Subscription
from conformance.mutants.narconi.connection import HttpConnection
from conformance.mutants.narconi.consumer import Consumer, Delivery
from conformance.mutants.narconi.errors import ClientError
from conformance.mutants.narconi.http import Response, encode_request
from conformance.mutants.narconi.publisher import Publisher
from conformance.mutants.narconi.socket import Socket
from conformance.mutants.rabbitmq_stream.network import Connect

PREFIX = "x-msg-x-"


class NarconiClient(ClientBase):
    """Queues and messages over HTTP, publishing and consuming over WebSockets.

    Nothing is repeated in silence. A publishing connection that is gone is made anew for the next message,
    with `Settings.auto_reconnect` at once; then subscriptions are too.

    Args:
        connect: Reaches servers.
        more: Those of `ClientBase`.
    """

    http_part = HttpConnection
    socket_part = Socket
    publisher_part = Publisher
    consumer_part = Consumer

    def __init__(self, settings: Settings, connect: Connect, **more: Any) -> None:
        super().__init__(settings, **more)
        self.publishers: dict[str, asyncio.Task[Publishing]] = {}
        self.subscriptions: list[Subscription] = []
        self.idle: list[HttpConnection] = []
        self.busy: set[HttpConnection] = set()
        self._connect = connect
        self._sockets: list[Socket] = []

    # addresses

    def path(self, queue: str, *more: str) -> str:
        """``/v2/:project/queues/:queue``, each name in one segment."""
        return "/".join(["/v2", self.escape(self.settings.project), "queues", self.escape(queue), *more])

    def escape(self, name: str) -> str:
        """A name as one segment of a path."""
        return quote(name, safe=":")

    # HTTP

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        """One request, sent once. Raises `ClientError` (connection)."""
        host = self.settings.endpoint
        request = encode_request(method, path, host, list((headers or {}).items()), body)
        connection = await self.connection()
        self.busy.add(connection)
        try:
            response = await connection.exchange(method, request)
        finally:
            self.busy.discard(connection)
        if connection.is_open:
            self.idle.append(connection)
        return response

    async def connection(self) -> HttpConnection:
        """An idle connection that still stands, or a new one."""
        while self.idle:
            connection = self.idle.pop()
            if connection.is_open:
                return connection
        new = self.http_part()
        new.noted = self.on_note
        await self.reach(lambda: new, new.begin)
        return new

    async def reach(self, make: Callable[[], asyncio.Protocol], begin: Callable[[Any], None]) -> None:
        """Connect to the server. Raises `ClientError` (connection)."""
        try:
            begin(await self._connect(self.settings.endpoint, make))
        except OSError as error:
            raise ClientError("connection", str(error), definite=True) from None

    def expect(self, response: Response, *wanted: int) -> None:
        """Raise `ClientError` (refused, auth) for any other status."""
        if response.status in wanted:
            return
        kind = "auth" if response.status == 401 else "refused"
        raise ClientError(kind, self.error_text(response), code=response.status)

    def error_text(self, response: Response) -> str:
        """What the server says about its refusal, in whatever form."""
        try:
            value = msgspec.json.decode(response.body)
        except msgspec.DecodeError:
            value = None
        if isinstance(value, dict) and isinstance(value.get("message"), str):
            return str(value["message"])
        return response.body.decode(errors="replace")[:200] or f"status {response.status}"

    async def ensure(self, queue: str) -> None:
        """Make a queue if there is none."""
        self.expect(await self.request("PUT", self.path(queue)), 201)

    async def delete(self, queue: str) -> None:
        """Delete a queue."""
        self.expect(await self.request("DELETE", self.path(queue)), 204)

    async def post(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        """Publish over HTTP; returns when the server has confirmed."""
        self.check_names(headers)
        texts = {name: self.header_text(value) for name, value in headers.items()}
        self.expect(await self.request("POST", self.path(queue, "messages"), texts, body), 201)

    def header_text(self, value: Any) -> str:
        """A value of metadata as text."""
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    async def take(self, queue: str) -> Delivery | None:
        """Consume one message over HTTP; None if there is none. It is acknowledged already."""
        response = await self.request("DELETE", self.path(queue, "messages"))
        self.expect(response, 200, 204)
        return None if response.status == 204 else self.delivery(response)

    def delivery(self, response: Response) -> Delivery:
        """The message in a response."""
        headers = {name.lower(): v for name, v in response.headers if name.lower().startswith(PREFIX)}
        content_type = response.header("content-type")
        if content_type is not None:
            headers["Content-Type"] = content_type
        timestamp = response.header("x-msg-timestamp")
        redelivered = response.header("x-msg-redelivered")
        return Delivery(
            response.body,
            headers,
            int(timestamp) if timestamp and timestamp.isdecimal() else None,
            self.flag(redelivered),
            None,
        )

    def flag(self, text: str | None) -> bool | None:
        """A boolean from a header."""
        return None if text is None else text == "true"

    def check_names(self, headers: Mapping[str, Any]) -> None:
        """Raise `ClientError` (invalid) for metadata that the server would drop, or die of."""
        for name, value in headers.items():
            if name.lower() == "content-type":
                if not isinstance(value, str):
                    raise ClientError("invalid", "Content-Type is text")
            elif not name.lower().startswith(PREFIX):
                raise ClientError("invalid", f"{name!r}: names of metadata begin with {PREFIX}")

    # WebSockets

    def socket(
        self,
        queue: str,
        protocol: str,
        query: Mapping[str, str],
        on_message: Callable[[Any], None],
        on_lost: Callable[[ClientError | None], None],
    ) -> Socket:
        """A WebSocket that is not connected yet."""
        text = "&".join(f"{name}={quote(value, safe='')}" if value else name for name, value in query.items())
        made = self.socket_part(
            self.websocket_path(queue) + (f"?{text}" if text else ""),
            self.settings.endpoint,
            protocol,
            on_message,
            on_lost,
            keepalive_s=self.settings.keepalive_s,
            random=self.random,
        )
        self._sockets = [one for one in self._sockets if not one.ended.is_set()]
        self._sockets.append(made)
        return made

    def websocket_path(self, queue: str) -> str:
        """Where WebSockets are opened."""
        return self.path(queue, "messages")

    async def open(self, socket: Socket) -> None:
        """Connect and upgrade; whatever goes wrong lets go of the connection."""
        try:
            await self.reach(lambda: socket, socket.begin)
            await socket.opened
        except BaseException:
            socket.abort()
            socket.ended.set()
            raise

    async def publisher(self, queue: str) -> Publishing:
        """The publishing connection of a queue, made if there is none that can be used."""
        task = self.publishers.get(queue)
        if task is None or (task.done() and (task.exception() or not task.result().is_usable)):
            work = self.within(OPEN_TIMEOUT_S, self.open_publisher(queue))
            task = self.publishers[queue] = self.background(work)
        return await self.join(task)

    async def open_publisher(self, queue: str) -> Publishing:
        """A new publishing connection."""
        made = Publishing(self, queue)
        await self.open(made.socket)
        return made

    def publisher_lost(self, queue: str, lost: Publishing, error: ClientError) -> None:
        """A publishing connection is gone; messages from now on wait for the next one, if this was in use."""
        self.tell("connection_lost", error.text, error.code)
        if lost in self._publishing():
            task = self.recover(lambda: self.open_publisher(queue))
            if task is not None:
                self.publishers[queue] = task

    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        """Publish over the WebSocket; returns when the server has confirmed.

        Whoever stops waiting gives the WebSocket up: a confirm that comes late looks like the next one.
        """
        self.check_names(headers)
        publishing = await self.publisher(queue)
        outcome: asyncio.Future[ClientError | None] = asyncio.get_running_loop().create_future()

        def done(error: ClientError | None) -> None:
            if not outcome.done():
                outcome.set_result(error)

        publishing.core.publish(headers, body, done)
        try:
            error = await outcome
        except asyncio.CancelledError:
            self.overdue(publishing)
            raise
        if error is not None:
            raise error

    def overdue(self, publishing: Publishing) -> None:
        """Nobody waits any more for a confirm that may still come."""
        publishing.socket.give_up("a confirm is overdue")

    async def subscribe(
        self,
        queue: str,
        callback: Callback,
        *,
        ack: bool = False,
        limit: Any = None,
        encoding: str | None = None,
    ) -> Subscription:
        """Consume over a WebSocket; callbacks run one after the other."""
        query: dict[str, str] = {"ack": ""} if ack else {}
        if limit is not None:
            query["limit"] = str(limit)
        if encoding is not None:
            query["encoding"] = encoding
        subscription = Subscription(self, queue, callback, query, ack=ack)
        self.subscriptions.append(subscription)
        await self.open(subscription.socket)
        return subscription

    # the end

    @property
    def pending(self) -> int:
        """Published messages without an outcome."""
        return sum(len(one.core.pending) for one in self._publishing())

    def _publishing(self) -> list[Publishing]:
        done = [task for task in self.publishers.values() if task.done() and not task.cancelled()]
        return [task.result() for task in done if task.exception() is None]

    async def close(self, timeout: float | None) -> None:
        """Wait for confirms for half the time, then close every connection properly."""
        self.is_closed = True
        patience = asyncio.get_running_loop().time() + (timeout or OPEN_TIMEOUT_S) / 2
        while self.pending and asyncio.get_running_loop().time() < patience:
            await asyncio.sleep(0.01)
        closing = [one.socket.close() for one in self._publishing()]
        await asyncio.gather(*closing, *(one.close() for one in self.subscriptions))
        self.abort()

    def abort(self) -> None:
        """Let go of everything."""
        self.is_closed = True
        for socket in self._sockets:
            socket.abort()
        for connection in [*self.idle, *self.busy]:
            connection.abort()
        for task in list(self.tasks):
            task.cancel()
