"""One HTTP connection of the client, kept for the next request where the server allows it."""

from __future__ import annotations

import asyncio
from typing import Protocol

from conformance.clients.reference.kit import ClientError, Runtime, Wire
from conformance.clients.reference.narconi.http import Response, ResponseReader


class Reaching(Protocol):
    """What wants to be connected: an `asyncio.Protocol`."""

    def begin(self, wire: Wire) -> None:
        """It is connected."""


async def reach(runtime: Runtime, endpoint: str, made: Reaching) -> None:
    """Connect to the server. Raises `ClientError` (connection)."""
    try:
        made.begin(await runtime.network.dial(endpoint, lambda: made))  # type: ignore[arg-type,return-value]
    except OSError as error:
        raise ClientError("connection", str(error), definite=True) from None


class HttpConnection(asyncio.Protocol):
    """Carries one request at a time.

    Attributes:
        is_open: Whether another request may go this way.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.wire: Wire | None = None
        self.is_open = True
        self._reader: ResponseReader | None = None
        self._answer: asyncio.Future[Response] | None = None

    def begin(self, wire: Wire) -> None:
        """It is connected."""
        self.wire = wire

    async def exchange(self, method: str, request: bytes) -> Response:
        """Send a request and wait for its response. Raises `ClientError` (connection, protocol)."""
        assert self.wire is not None
        self._reader = self.reader_for(method)
        self._answer = asyncio.get_running_loop().create_future()
        self.wire.write(request)
        try:
            response = await self._answer
        except BaseException:  # also where it is cancelled in the turn in which the response has come
            self.abort()
            raise
        self._answer = None
        if not self.is_reusable(response, self._reader.rest):
            self.abort()
        return response

    def reader_for(self, method: str) -> ResponseReader:
        """Reads the response to a request."""
        return self._runtime.part(ResponseReader)(method)

    def is_reusable(self, response: Response, rest: bytes) -> bool:
        """Whether another request may follow; not where bytes came that nobody asked for."""
        return response.keeps_alive and not rest

    def abort(self) -> None:
        """Let go of the socket."""
        self.is_open = False
        if self.wire is not None:
            self.wire.abort()

    # asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        if self._reader is None or self._answer is None or self._answer.done():
            self._runtime.callbacks.note(f"{len(data)} bytes over HTTP, without a request, were dropped")
            self.abort()
            return
        try:
            response = self._reader.feed(data)
        except ClientError as error:
            self._answer.set_exception(error)
            return
        if response is not None:
            self._answer.set_result(response)

    def eof_received(self) -> None:
        response = self._reader.end() if self._reader is not None else None
        if response is not None and self._answer is not None and not self._answer.done():
            self._answer.set_result(response)
        self._ended("the server ended the connection before its answer was complete")

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended(str(exc or "the connection is closed"))

    def _ended(self, text: str) -> None:
        self.is_open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self.cut(text))

    def cut(self, text: str) -> ClientError:
        """What a response that did not come means: the server may have done it all the same."""
        return ClientError("connection", text)
