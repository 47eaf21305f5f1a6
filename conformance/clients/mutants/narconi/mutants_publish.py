"""Defects in publishing over WebSocket (catalogue section NARC-2)."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, ClientError, Runtime, WaitQueue
from conformance.clients.reference.narconi.api import PREFIX, HttpApi, Metadata
from conformance.clients.reference.narconi.channels import Publishers, Publishing
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.http import Response
from conformance.clients.reference.narconi.publisher import Done, Publisher, read_error
from conformance.clients.reference.narconi.settings import Addresses
from conformance.clients.reference.narconi.socket import Socket
from conformance.clients.reference.narconi.websocket import Message, MessageReader
from conformance.clients.reference.narconi.websockets import WebSockets
from fakebrokers.narconi.websocket import BINARY, CLOSE, CONTINUATION, TEXT

T = TypeVar("T")

# the upgrade


@mutant("upgrade-at-the-queue", tag="wire", breaks=["N5", "N10", "N19"])
class UpgradeAtTheQueue(Addresses):
    """Opens the WebSocket at the address of the queue, without /messages."""

    def websocket(self, queue: str) -> str:
        return self.path(queue)


@mutant("protocol-list", tag="wire", breaks=["N5", "N10", "N19"])
class ProtocolList(Socket):
    """Offers a list of sub-protocols."""

    def upgrade_headers(self) -> list[tuple[str, str]]:
        *others, (name, value) = super().upgrade_headers()
        return [*others, (name, f"{value}, other")]


@mutant("missing-protocol-is-a-defect", tag="wording", breaks=["N5"])
class MissingProtocolIsADefect(Socket):
    """Fails on an upgrade without a sub-protocol."""

    def check(self, response: Response) -> None:
        if response.status == 101 and response.header("sec-websocket-protocol") is None:
            raise ClientError("internal", "'NoneType' object has no attribute 'lower'")
        super().check(response)


@mutant("refused-upgrade-is-a-defect", tag="wording", breaks=["N5", "N11", "N16"])
class RefusedUpgradeIsADefect(Socket):
    """Reports a refused upgrade as a failure of its own."""

    def check(self, response: Response) -> None:
        if response.status != 101:
            raise ClientError("internal", "unexpected server response")
        super().check(response)


class _Discovering(NarconiClient):
    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        self.discovered(await self.http.options(queue))
        await super().publish(queue, body, headers)

    def discovered(self, response: Response) -> None:
        """Look at the answer to OPTIONS."""


@mutant("refused-upgrade-is-repeated", tag="life-cycle", breaks=["N5", "N16"])
class RefusedUpgradeIsRepeated(Publishers):
    """Asks twenty times when the server refuses an upgrade."""

    async def publisher(self, queue: str) -> Publishing:
        for _ in range(20):
            try:
                return await super().publisher(queue)
            except ClientError as error:
                if error.kind != "refused":
                    raise
        return await super().publisher(queue)


@mutant("discovery-must-work", tag="life-cycle", breaks=["N19"])
class DiscoveryMustWork(_Discovering):
    """Gives up when the server does not answer OPTIONS with the endpoint."""

    def discovered(self, response: Response) -> None:
        self.http.expect(response, 200)


@mutant("discovery-must-fail", tag="life-cycle", breaks=["N19"])
class DiscoveryMustFail(_Discovering):
    """Fails on an answer to OPTIONS that has no body."""

    def discovered(self, response: Response) -> None:
        if response.status == 200 and not response.body:
            raise ClientError("protocol", "no endpoint in the body")


# the forms of a message


@mutant("metadata-in-binary", tag="wire", breaks=["N5", "N6"])
class MetadataInBinary(Publisher):
    """Sends metadata in a binary message, which the server takes for a message of its own."""

    def publish(self, metadata: Mapping[str, Any], body: bytes, done: Done) -> None:
        self.pending.append(done)
        self._send(BINARY, self.encode_metadata(metadata))
        self._send(BINARY, body)


@mutant("empty-text-for-no-metadata", tag="wire", breaks=["N5"])
class EmptyTextForNoMetadata(Publisher):
    """Sends an empty message in place of empty metadata, as the document allows and the server refuses."""

    def encode_metadata(self, metadata: Mapping[str, Any]) -> bytes:
        return super().encode_metadata(metadata) if metadata else b""


@mutant("text-alone-for-no-metadata", tag="wire", breaks=["N5"])
class TextAloneForNoMetadata(Publisher):
    """Sends a body without metadata as one text message."""

    def publish(self, metadata: Mapping[str, Any], body: bytes, done: Done) -> None:
        if metadata:
            super().publish(metadata, body, done)
            return
        self.pending.append(done)
        self._send(TEXT, body)


@mutant("message-not-escaped", tag="wire", breaks=["N6"])
class MessageNotEscaped(Publisher):
    """Uses the form of one message, and does not escape the text in it."""

    def publish(self, metadata: Mapping[str, Any], body: bytes, done: Done) -> None:
        self.pending.append(done)
        self._send(TEXT, b'{"message":"%b"}' % body)


@mutant("pairs-torn", tag="wire", breaks=["N5", "N7"])
class PairsTorn(Publisher):
    """Lets other messages between the metadata and the body of one."""

    def publish(self, metadata: Mapping[str, Any], body: bytes, done: Done) -> None:
        self.pending.append(done)
        self._send(TEXT, self.encode_metadata(metadata))
        asyncio.get_running_loop().call_soon(self._send, BINARY, body)


@mutant("bodies-are-text", tag="data", breaks=["N5", "X12"])
class NarconiBodiesAreText(Publisher):
    """Takes bodies for UTF-8 and repairs what is none."""

    def publish(self, metadata: Mapping[str, Any], body: bytes, done: Done) -> None:
        self.pending.append(done)
        self._send(TEXT, self.encode_metadata(metadata))
        self._send(TEXT, body.decode(errors="replace").encode())


@mutant("metadata-unchecked", tag="wire", breaks=["N3", "N5"])
class MetadataUnchecked(Metadata):
    """Sends metadata that the server drops, or crashes at."""

    def check(self, headers: Mapping[str, Any]) -> None:
        pass


@mutant("unknown-names-dropped", tag="data", breaks=["N3", "N5"])
class UnknownNamesDropped(HttpApi):
    """Leaves out metadata without the prefix, over HTTP, without an error."""

    async def post(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        known = (PREFIX, "content-type")
        kept = {name: value for name, value in headers.items() if name.lower().startswith(known)}
        await super().post(queue, body, kept)


# confirms


@mutant("confirms-on-write", tag="data", breaks=["N7", "N8", "N9"])
class NarconiConfirmsOnWrite(Publisher):
    """Reports messages as stored as soon as they are written."""

    def publish(self, metadata: Mapping[str, Any], body: bytes, done: Done) -> None:
        super().publish(metadata, body, done)
        asyncio.get_running_loop().call_soon(done, None)


@mutant("confirms-the-newest", tag="data", breaks=["N7", "X8"])
class ConfirmsTheNewest(Publisher):
    """Takes a confirm for one of the newest message."""

    def confirmed(self) -> None:
        self.pending.rotate(1)
        super().confirmed()


@mutant("one-confirm-per-segment", tag="wire", breaks=["N7"])
class OneConfirmPerSegment(MessageReader):
    """Reads only the first of several messages that come together."""

    def feed(self, data: bytes) -> list[Message]:
        return super().feed(data)[:1]


@mutant("fragments-are-messages", tag="wire", breaks=["N7"])
class FragmentsAreMessages(MessageReader):
    """Takes each fragment for a message."""

    def _take(self, opcode: int, final: bool, payload: bytes) -> Message:
        message = super()._take(opcode, final, payload)
        return Message(TEXT, payload) if message.opcode == CONTINUATION else message


@mutant("loss-means-stored", tag="data", breaks=["N7", "N8"])
class NarconiLossMeansStored(Publisher):
    """Reports what has no confirm when the connection ends as stored."""

    def lost(self, error: ClientError) -> None:
        while self.pending:
            self.confirmed()


# errors


@mutant("errors-confirm", tag="data", breaks=["N9", "X5"])
class NarconiErrorsConfirm(Publisher):
    """Takes an error for a confirm."""

    def message(self, message: Message) -> None:
        self.confirmed()


@mutant("errors-need-text", tag="wording", breaks=["N9"])
class ErrorsNeedText(Publisher):
    """Fails on an error without a text."""

    def refused(self, error: ClientError) -> None:
        if not error.text:
            error = ClientError("internal", "KeyError: 'error'")
        super().refused(error)


@mutant("nonsense-ignored", tag="wire", breaks=["N9"])
class NonsenseIgnored(Publisher):
    """Ignores what is neither a confirm nor an error."""

    def message(self, message: Message) -> None:
        if message.payload:
            try:
                read_error(message.payload)
            except ClientError:
                return
        super().message(message)


@mutant("errors-lose-the-code", tag="wording", breaks=["N9"])
class ErrorsLoseTheCode(Publisher):
    """Reports every refused message as an error of its own."""

    def refused(self, error: ClientError) -> None:
        super().refused(ClientError("internal", error.text))


@mutant("stray-error-answers-the-next", tag="data", breaks=["N9", "N14"])
class StrayErrorAnswersTheNext(Publishers):
    """Keeps an error that answers no message for the next one."""

    kept: ClientError | None = None

    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        publishing = await self.publisher(queue)
        before = publishing.core._on_error

        def keep(error: ClientError) -> None:
            self.kept = error
            before(error)

        publishing.core._on_error = keep
        if self.kept is not None:
            error, self.kept = self.kept, None
            raise error
        await super().publish(queue, body, headers)


# the end


@mutant("close-means-stored", tag="data", breaks=["N7"])
class CloseMeansStored(NarconiClient):
    """Reports what has no confirm yet as stored when it is closed."""

    async def close(self, timeout: float | None = None) -> None:
        for publishing in self.publishers.standing():
            while publishing.core.pending:
                publishing.core.confirmed()
        await super().close(timeout)


@mutant("close-waits-for-ever", tag="life-cycle", breaks=["N7"])
class NarconiCloseWaitsForEver(Socket):
    """Waits for the server's Close frame, however long it takes."""

    def close_wait_s(self) -> float | None:
        return None


@mutant("close-code-of-its-own", tag="wire", breaks=["N7"])
class CloseCodeOfItsOwn(Socket):
    """Closes with a code that means an error."""

    def write(self, opcode: int, payload: bytes) -> None:
        super().write(opcode, (1011).to_bytes(2, "big") if opcode == CLOSE else payload)


@mutant("loose-json", tag="wire", breaks=["N5"])
class LooseJson(Publisher):
    """Sends metadata as a list of pairs."""

    def encode_metadata(self, metadata: Mapping[str, Any]) -> bytes:
        return json.dumps(list(metadata.items())).encode()


class _NoLine(WaitQueue):
    async def after(self, ready: Awaitable[T]) -> T:
        return await ready


@mutant("newcomers-overtake", tag="data", breaks=["N5"])
class NewcomersOvertake(Publishers):
    """Lets a message that comes while the WebSocket opens go before those that wait for it."""

    def __init__(self, runtime: Runtime, websockets: WebSockets) -> None:
        super().__init__(runtime, websockets)
        self._lines = defaultdict(_NoLine)


@mutant("a-connection-for-each-that-waits", tag="life-cycle", breaks=["N5"])
class AConnectionForEachThatWaits(Publishers):
    """Opens a connection for a queue while one is being opened for it; the last one is used from then on."""

    async def publisher(self, queue: str) -> Publishing:
        task = self.by_queue.get(queue)
        if task is not None and not task.done():
            self.by_queue[queue] = self.runtime.tasks.spawn(self.open(queue))
        return await super().publisher(queue)


@mutant("cancel-takes-others-along", tag="life-cycle", breaks=["X9"])
class CancelTakesOthersAlong(Publishers):
    """Ends the opening of a WebSocket with the message for which it was begun, and keeps the failed one."""

    async def publisher(self, queue: str) -> Publishing:
        if queue not in self.by_queue:
            self.by_queue[queue] = self.runtime.tasks.spawn(self.opened(queue))
            return await self.by_queue[queue]
        return await super().publisher(queue)

    async def opened(self, queue: str) -> Publishing:
        """A new publishing connection, in time."""
        return await self.runtime.tasks.within(DEFAULT_TIMEOUT_S, self.open(queue))


@mutant("metadata-as-long-as-their-letters", tag="wire", breaks=["N5"])
class MetadataAsLongAsTheirLetters(Publisher):
    """Writes as many bytes of the metadata as they have letters."""

    def encode_metadata(self, metadata: Mapping[str, Any]) -> bytes:
        whole = super().encode_metadata(metadata)
        return whole[: len(whole.decode())]


@mutant("unanswered-close-fails", tag="life-cycle", breaks=["N7"])
class UnansweredCloseFails(Socket):
    """A close ends with an error where the server does not answer, and leaves the connection open."""

    async def close(self) -> None:
        if self.is_open:
            self._closing = True
            self.write(CLOSE, (1000).to_bytes(2, "big"))
            await asyncio.wait_for(self.ended.wait(), self.close_wait_s())
        self.abort()
