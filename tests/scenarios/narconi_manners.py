"""What correct clients of Narconi do in their own manner: parts in place of the reference client's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from conformance.reference.kit import Callbacks, ClientError, Runtime
from conformance.reference.narconi.api import HttpApi, Metadata
from conformance.reference.narconi.channels import Publishers, Publishing
from conformance.reference.narconi.consumer import Consumer
from conformance.reference.narconi.http import Response
from conformance.reference.narconi.socket import Socket
from conformance.reference.narconi.websocket import Message
from fakebrokers.narconi.websocket import BINARY

MOVED = 301


class RepeatsWithGet(HttpApi):
    """Follows a 301 with GET, as browsers do, and many HTTP libraries (RFC 9110, 15.4.2)."""

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        found = await super().request(method, path, headers, body)
        there = found.header("location")
        if found.status == MOVED and there:
            return await super().request("GET", there)
        return found


class BodiesAreBinary(Consumer):
    """Tells a body from metadata by the kind of frame, and complains of a body in a text frame."""

    def message(self, message: Message) -> None:
        if (self._metadata is not None) is not (message.opcode == BINARY):
            raise ClientError("protocol", "a frame of the other kind was expected")
        super().message(message)


class CalledOnTheReader(Callbacks):
    """Message callbacks run on the thread that reads: while one does, nothing is read."""

    running = 0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.waiting: list[Callable[[], None]] = []

    async def contain_async(self, callback: str, act: Callable[[], Awaitable[None]]) -> None:
        self.running += 1
        try:
            await super().contain_async(callback, act)
        finally:
            self.running -= 1
            waiting, self.waiting = self.waiting, []
            for read in waiting:
                read()


class ReadsInTurn(Socket):
    """Its bytes wait for the callback: see `CalledOnTheReader`."""

    def __init__(self, runtime: Runtime, *args: Any, **more: Any) -> None:
        super().__init__(runtime, *args, **more)
        assert isinstance(runtime.callbacks, CalledOnTheReader)
        self._callbacks = runtime.callbacks

    def data_received(self, data: bytes) -> None:
        if self._callbacks.running:
            self._callbacks.waiting.append(lambda: self.data_received(data))
        else:
            super().data_received(data)


class OnlyText(Metadata):
    """Takes text for values of metadata, and nothing else."""

    def check(self, headers: Mapping[str, Any]) -> None:
        super().check(headers)
        if not all(isinstance(value, str) for value in headers.values()):
            raise ClientError("invalid", "values of metadata are text")


class Left(Publishers):
    """A publishing connection that is lost stays lost until the session connects again."""

    async def publisher(self, queue: str) -> Publishing:
        task = self.by_queue.get(queue)
        if task is not None and task.done() and not task.exception() and not task.result().is_usable:
            raise ClientError("closed", "the connection was lost", definite=True)
        return await super().publisher(queue)


class GoesOnWithoutSubProtocol(Socket):
    """Takes an acceptance that names no sub-protocol, as most libraries do (RFC 6455, 4.1)."""

    def check(self, response: Response) -> None:
        named = response.header("sec-websocket-protocol")
        headers = [*response.headers, *([] if named else [("sec-websocket-protocol", self.protocol)])]
        super().check(response._replace(headers=headers))
