"""Queues and messages over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.kit.ordered import OrderedSet
from conformance.clients.reference.narconi.connection import HttpConnection, reach
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.http import Response, encode_request
from conformance.clients.reference.narconi.settings import Addresses, Settings

PREFIX = "x-msg-x-"


class HttpApi:
    """Each request is sent once; connections are kept for the next one."""

    def __init__(self, runtime: Runtime, settings: Settings, addresses: Addresses) -> None:
        self._runtime = runtime
        self._endpoint = settings.endpoint
        self._addresses = addresses
        self._idle: list[HttpConnection] = []
        self._busy: OrderedSet[HttpConnection] = OrderedSet()

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        """One request, sent once. Raises `ClientError` (connection)."""
        request = encode_request(method, path, self._endpoint, list((headers or {}).items()), body)
        connection = await self._connection()
        self._busy.add(connection)
        try:
            response = await connection.exchange(method, request)
        finally:
            self._busy.discard(connection)
        if connection.is_open:
            self._idle.append(connection)
        return response

    async def _connection(self) -> HttpConnection:
        """An idle connection that is still open, or a new one."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        new = self._runtime.part(HttpConnection)(self._runtime)
        await reach(self._runtime, self._endpoint, new)
        return new

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
        except (msgspec.DecodeError, UnicodeDecodeError):
            value = None
        if isinstance(value, dict) and isinstance(value.get("message"), str):
            return str(value["message"])
        return response.body.decode(errors="replace")[:200] or f"status {response.status}"

    # queues

    async def ensure(self, queue: str) -> None:
        """Make a queue if there is none."""
        self.expect(await self.request("PUT", self._addresses.path(queue)), 201)

    async def delete(self, queue: str) -> None:
        """Delete a queue."""
        self.expect(await self.request("DELETE", self._addresses.path(queue)), 204)

    async def options(self, queue: str) -> Response:
        """What the server answers to OPTIONS."""
        return await self.request("OPTIONS", self._addresses.path(queue))

    # messages

    async def post(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        """Publish over HTTP; returns when the server has confirmed."""
        self._runtime.part(Metadata)().check(headers)
        texts = {name: self.header_text(value) for name, value in headers.items()}
        self.expect(await self.request("POST", self._addresses.path(queue, "messages"), texts, body), 201)

    def header_text(self, value: Any) -> str:
        """A value of metadata as text."""
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    async def take(self, queue: str) -> Delivery | None:
        """Consume one message over HTTP; None if there is none. It is acknowledged already."""
        response = await self.request("DELETE", self._addresses.path(queue, "messages"))
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

    def abort(self) -> None:
        """Let go of all connections."""
        for connection in [*self._idle, *self._busy]:
            connection.abort()


class Metadata:
    """The names that metadata may have, over HTTP and over WebSockets."""

    def check(self, headers: Mapping[str, Any]) -> None:
        """Raise `ClientError` (invalid) for metadata that the server would drop, or die of."""
        for name, value in headers.items():
            if name.lower() == "content-type":
                if not isinstance(value, str):
                    raise ClientError("invalid", "Content-Type is text")
            elif not name.lower().startswith(PREFIX):
                raise ClientError("invalid", f"{name!r}: names of metadata begin with {PREFIX}")
