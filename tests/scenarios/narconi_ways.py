"""What correct clients of Narconi do in their own manner: parts in place of the reference client's."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from random import Random
from typing import Any, ClassVar

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.mutants.narconi.mutants_http import NoTimeOuts
from conformance.clients.reference.kit import Backoff, Callbacks, ClientError, Runtime
from conformance.clients.reference.narconi.api import HttpApi, Metadata
from conformance.clients.reference.narconi.channels import Publishers, Publishing
from conformance.clients.reference.narconi.consumer import OWN_KEYS, Consumer
from conformance.clients.reference.narconi.http import Response
from conformance.clients.reference.narconi.ops import REFERENCE
from conformance.clients.reference.narconi.socket import Socket
from conformance.clients.reference.narconi.websocket import Message, MessageReader
from conformance.clients.reference.narconi.websockets import WebSockets
from fakebrokers.narconi.websocket import BINARY, CLOSE, xor

MOVED = 301
METADATA = ("x-msg-x-", "content-type")  #: how the names begin that the server keeps
#: Parts of a client, and what its adapter declares or tells in its own way.
Manner = tuple[tuple[type, ...], type[AdapterBase] | None]


def without(capability: str) -> str:
    """What the reference client can do, but for that."""
    return " ".join(word for word in REFERENCE.caps.split() if word != capability)


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


class OneRequestEach(HttpApi):
    """Makes a connection for each request, and asks the server to end it after its answer."""

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        return await super().request(method, path, {**(headers or {}), "Connection": "close"}, body)


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


class NoOpsInCallbacks(AdapterBase):
    """Declares what `CalledOnTheReader` cannot do."""

    caps = without("reentrant")


class OnlyText(Metadata):
    """Takes text for values of metadata, and nothing else."""

    def check(self, headers: Mapping[str, Any]) -> None:
        super().check(headers)
        if not all(isinstance(value, str) for value in headers.values()):
            raise ClientError("invalid", "values of metadata are text")


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class MetadataIsText(Consumer):
    """Its headers are texts: what is none is handed on as JSON has it."""

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        stored = {name: as_text(value) for name, value in metadata.items() if name not in OWN_KEYS}
        super().deliver_message({**metadata, **stored}, body)


class WritesText(Publishers):
    """And so are those that it writes."""

    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        await super().publish(queue, body, {name: as_text(value) for name, value in headers.items()})


class LeavesOutWhatIsNoText(Consumer):
    """Its headers are texts, and it hands on nothing else."""

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        texts = {name: v for name, v in metadata.items() if name in OWN_KEYS or isinstance(v, str)}
        super().deliver_message(texts, body)


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


class Declared(AdapterBase):
    """Says that only what finds the server is made anew: see `Left`."""

    reconnects = ("locator",)


class NeverAgain(WebSockets):
    """Makes no lost connection anew."""

    def recover(self, again: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """There is no other."""


class SaysSo(AdapterBase):
    """Declares what `NeverAgain` does."""

    caps = without("auto_reconnect")


class ComesBackAnyway(WebSockets):
    """Makes lost connections anew, whatever it was asked."""

    def recover(self, again: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return None if self.runtime.is_closed else self.runtime.tasks.spawn(self.reconnect(again))


class CannotBeAsked(AdapterBase):
    """Declares what `ComesBackAnyway` does."""

    lacks = "connect.auto_reconnect"


class OneAtATime(Publishers):
    """A message is sent when the one before has its confirm."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        async with self._locks[queue]:
            await super().publish(queue, body, headers)


class OneOpen(AdapterBase):
    """Declares what `OneAtATime` does."""

    limits: ClassVar = {"unconfirmed": 1}


class WaitsForNoClose(Socket):
    """Says goodbye and leaves."""

    def close_wait_s(self) -> float:
        return 0.01


class TakesMasked(MessageReader):
    """Takes frames of a server that are masked, which RFC 6455, 5.1, has it refuse."""

    def _next(self) -> Message | None:
        buffer = self._buffer
        size = buffer[1] & 0x7F if len(buffer) > 1 else 0
        if len(buffer) >= 6 + size and buffer[1] & 0x80:
            plain = xor(bytes(buffer[6 : 6 + size]), bytes(buffer[2:6]))
            buffer[1 : 6 + size] = bytes((size,)) + plain
        return super()._next()


class ClosesWithItsOwnCode(Socket):
    """Closes with a code for private use, which the server answers as any other (RFC 6455, 7.4.2)."""

    def write(self, opcode: int, payload: bytes) -> None:
        super().write(opcode, (4000).to_bytes(2) if opcode == CLOSE else payload)


class WakesInAnyOrder(Publishers):
    """Its callers wait in threads of their own, which wake up in any order."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._dice = Random(8)

    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        await super().publish(queue, body, headers)
        await asyncio.sleep(self._dice.random() / 100)


class NamesAreSentAsGiven(Metadata):
    """Sends metadata under the names that it was given, and leaves it to the server to drop some."""

    def check(self, headers: Mapping[str, Any]) -> None:
        super().check({name: value for name, value in headers.items() if name.lower().startswith(METADATA)})


class RefusesMeanwhile(Publishers):
    """Publishes fail at once until a lost connection has been made anew."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._lost: set[str] = set()

    async def publisher(self, queue: str) -> Publishing:
        task = self.by_queue.get(queue)
        if task is not None and not task.done() and queue in self._lost:
            raise ClientError("closed", "not connected", definite=True)
        return await super().publisher(queue)

    def lost(self, queue: str, lost: Publishing, error: ClientError) -> None:
        self._lost.add(queue)
        super().lost(queue, lost, error)


class InNoHurry(Backoff):
    """Connects again later than others."""

    def delay(self) -> float:
        return 1.5 + 2 * super().delay()


class ErrorsAreReasons(AdapterBase):
    """Tells an error of the server as the reason of the loss that follows."""

    _reason: Mapping[str, Any] | None = None

    def emit(self, event: str, **fields: Any) -> None:
        if event == "error" and fields["where"] == "read":
            self._reason = fields["error"]
            return
        if self._reason is not None and event == "session" and fields["what"] == "connection_lost":
            fields |= {"text": self._reason["text"], "code": self._reason["code"]}
            self._reason = None
        super().emit(event, **fields)


class SubscribesLater(AdapterBase):
    """Tells of a subscription that could not be had by an event, behind the op."""

    caps = f"{REFERENCE.caps} lazy_subscribe"

    async def _perform(self, request: dict[str, Any]) -> Any:
        if request["op"] != "subscribe":
            return await super()._perform(request)
        asyncio.get_running_loop().create_task(self._subscribe(request))
        return {}

    async def _subscribe(self, request: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(0.1)
            await super()._perform(request)
        except ClientError as error:
            reported = self.classify(error).report()
            self.emit("error", session="s1", sub=request["args"]["sub"], where="other", error=reported)


class SaysItWasClosed(AdapterBase):
    """Closes a connection whose handshake takes too long, and reports that it was closed: Vert.x, for one."""

    async def _perform(self, request: dict[str, Any]) -> Any:
        try:
            return await super()._perform(request)
        except ClientError as error:
            if request["op"] != "subscribe" or error.kind != "timeout":
                raise
            raise ClientError("connection", "closed during the handshake") from None


class GivesUpLater(Publishers):
    """Tells that a publish is overdue, and then gives its WebSocket up."""

    def overdue(self, publishing: Publishing) -> None:
        asyncio.get_running_loop().call_later(0.001, super().overdue, publishing)


class KeepsWhatIsOverdue(Publishers):
    """Opens another WebSocket once a confirm is overdue; the former one is open until the end."""

    def overdue(self, publishing: Publishing) -> None:
        for queue, task in list(self.by_queue.items()):
            if task.done() and not task.exception() and task.result() is publishing:
                del self.by_queue[queue]


class SaysHowLongAtMost(AdapterBase):
    """Keeps to the time-out of each publish, and declares how long one takes at most."""

    limits: Mapping[str, int] = {"publish_timeout_ms": 10_000}


class TimesSilence(AdapterBase):
    """Says that an answer that goes on coming is waited for; with `NoTimeOuts`."""

    async def attempt(self, request: Any) -> Any:
        answer = await super().attempt(request)
        if request["op"] == "hello":
            answer["result"]["contract"] = {**answer["result"]["contract"], "times_silence": True}
        return answer


WAYS: Mapping[str, Manner] = {
    "times-silence": ((NoTimeOuts,), TimesSilence),
    "one-request-each": ((OneRequestEach,), None),
    "repeats-with-get": ((RepeatsWithGet,), None),
    "bodies-are-binary": ((BodiesAreBinary,), None),
    "called-on-the-reader": ((CalledOnTheReader, ReadsInTurn), NoOpsInCallbacks),
    "only-text": ((OnlyText,), None),
    "metadata-is-text": ((MetadataIsText, WritesText), None),
    "leaves-out-no-text": ((LeavesOutWhatIsNoText,), None),
    "left": ((Left,), Declared),
    "never-again": ((NeverAgain, Left), SaysSo),
    "no-sub-protocol": ((GoesOnWithoutSubProtocol,), None),
    "names-as-given": ((NamesAreSentAsGiven,), None),
    "one-at-a-time": ((OneAtATime,), OneOpen),
    "own-close-code": ((ClosesWithItsOwnCode,), None),
    "waits-for-no-close": ((WaitsForNoClose,), None),
    "wakes-in-any-order": ((WakesInAnyOrder,), None),
    "refuses-meanwhile": ((RefusesMeanwhile, ComesBackAnyway, InNoHurry), CannotBeAsked),
    "errors-are-reasons": ((), ErrorsAreReasons),
    "keeps-what-is-overdue": ((KeepsWhatIsOverdue,), None),
    "says-how-long-at-most": ((GivesUpLater,), SaysHowLongAtMost),
    "subscribes-later": ((), SubscribesLater),
    "says-it-was-closed": ((), SaysItWasClosed),
}
