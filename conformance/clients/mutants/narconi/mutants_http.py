"""Defects in the HTTP API (catalogue section NARC-1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError, Tasks
from conformance.clients.reference.kit.ordered import OrderedSet
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.channels import Publishers
from conformance.clients.reference.narconi.connection import HttpConnection
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.http import Response, ResponseReader
from conformance.clients.reference.narconi.settings import Addresses

T = TypeVar("T")


# addresses


@mutant("trailing-slash", tag="wire", breaks=["N1", "N2", "N19"])
class TrailingSlash(Addresses):
    """Ends the address of a queue with a slash."""

    def path(self, queue: str, *more: str) -> str:
        return super().path(queue, *more) + ("" if more else "/")


@mutant("names-unescaped", tag="wire", breaks=["N19"])
class NamesUnescaped(Addresses):
    """Puts names into addresses as they are."""

    def escape(self, name: str) -> str:
        return quote(name, safe=":/%?# ")


# requests


@mutant("delete-expects-200", tag="data", breaks=["N2"])
class DeleteExpects200(HttpApi):
    """Takes 204 for a failure to delete."""

    async def delete(self, queue: str) -> None:
        self.expect(await self.request("DELETE", self._addresses.path(queue)), 200)


@mutant("post-is-text", tag="data", breaks=["N3"])
class PostIsText(HttpApi):
    """Takes bodies for UTF-8 and repairs what is none."""

    async def post(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        await super().post(queue, body.decode(errors="replace").encode(), headers)


@mutant("post-without-metadata", tag="data", breaks=["N3"])
class PostWithoutMetadata(HttpApi):
    """Sends no custom metadata over HTTP."""

    async def post(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        kept = {name: value for name, value in headers.items() if name == "Content-Type"}
        await super().post(queue, body, kept)


async def _again(work: Callable[[], Awaitable[None]]) -> None:
    for _ in range(5):
        try:
            return await work()
        except ClientError as error:
            if error.code != 429:
                raise
    return await work()


class _ThrottledPublishers(Publishers):
    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        original = super().publish
        await _again(lambda: original(queue, body, headers))


@mutant("throttled-is-repeated", tag="life-cycle", breaks=["N16", "N9"], also=[_ThrottledPublishers])
class ThrottledIsRepeated(HttpApi):
    """Repeats at once what was refused with 429."""

    async def post(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        original = super().post
        await _again(lambda: original(queue, body, headers))


@mutant("delete-is-repeated", tag="data", breaks=["N4", "N17"])
class DeleteIsRepeated(HttpApi):
    """Repeats a DELETE without notice when its connection breaks, because DELETE is idempotent elsewhere."""

    async def take(self, queue: str) -> Delivery | None:
        try:
            return await super().take(queue)
        except ClientError as error:
            if error.kind != "connection":
                raise
            return await super().take(queue)


@mutant("no-time-outs", tag="life-cycle", breaks=["N4", "N5", "N7", "X3", "X5", "X8"], aims=["NET-2.12"])
class NoTimeOuts(Tasks):
    """Waits forever."""

    async def within(self, timeout: float | None, work: Coroutine[Any, Any, T]) -> T:
        return await super().within(None, work)


# answers


class _Leftovers(ResponseReader):
    def length_of(self, head: Response) -> int | None:
        return 0 if head.status == 201 else super().length_of(head)


@mutant("deaf-to-connection-close", tag="life-cycle", breaks=["N1"])
class DeafToConnectionClose(HttpConnection):
    """Sends its next request on a connection that the server has said to be the last."""

    def is_reusable(self, response: Response, rest: bytes) -> bool:
        return not rest


@mutant("empty-chunk-unread", tag="wire", breaks=["N1"], also=[_Leftovers])
class EmptyChunkUnread(HttpConnection):
    """Does not read the end of an empty chunked body, and takes it for the next answer."""

    left = b""

    def is_reusable(self, response: Response, rest: bytes) -> bool:
        self.left = rest
        return response.keeps_alive

    def reader_for(self, method: str) -> ResponseReader:
        reader = super().reader_for(method)
        reader.feed(self.left)
        return reader


@mutant("status-ignored", tag="data", breaks=["N1", "N2", "N3", "N16", "X5"])
class StatusIgnored(HttpApi):
    """Takes every answer for a success."""

    def expect(self, response: Response, *wanted: int) -> None:
        pass


@mutant("redirect-means-done", tag="data", breaks=["N16"])
class RedirectMeansDone(HttpApi):
    """Takes a redirect for a success."""

    def expect(self, response: Response, *wanted: int) -> None:
        if not 300 <= response.status < 400:
            super().expect(response, *wanted)


@mutant("status-forgotten", tag="wording", breaks=["N1", "N2", "N16"])
class StatusForgotten(HttpApi):
    """Reports refusals without the status."""

    def expect(self, response: Response, *wanted: int) -> None:
        if response.status not in wanted:
            raise ClientError("refused", self.error_text(response))


@mutant("errors-must-be-json", tag="wording", breaks=["N16"])
class ErrorsMustBeJson(HttpApi):
    """Fails on an error whose body is no JSON object."""

    def error_text(self, response: Response) -> str:
        return str(msgspec.json.decode(response.body)["message"])


@mutant("outage-is-final", tag="life-cycle", breaks=["N16"])
class OutageIsFinal(HttpApi):
    """Never asks a server again that has answered 500."""

    is_down = False

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        if self.is_down:
            raise ClientError("refused", "Cannot connect to the AMQP backend.", code=500)
        response = await super().request(method, path, headers, body)
        self.is_down = response.status == 500
        return response


@mutant("cut-body-is-whole", tag="wire", breaks=["N17", "X2"])
class CutBodyIsWhole(ResponseReader):
    """Takes the end of the connection for the end of any body."""

    def end(self) -> Response | None:
        if self._head is None:
            return None
        return self._head._replace(body=bytes(self._body or self._buffer))


@mutant("loss-is-definite", tag="data", breaks=["N3", "N17"])
class LossIsDefinite(HttpConnection):
    """Says that a request whose answer did not come had no effect."""

    def cut(self, text: str) -> ClientError:
        return ClientError("connection", text, definite=True)


@mutant("empty-body-is-no-message", tag="data", breaks=["N4"])
class EmptyBodyIsNoMessage(HttpApi):
    """Takes a message with an empty body for none."""

    async def take(self, queue: str) -> Delivery | None:
        delivery = await super().take(queue)
        return delivery if delivery is not None and delivery.body else None


@mutant("empty-queue-is-an-error", tag="data", breaks=["N4"])
class EmptyQueueIsAnError(HttpApi):
    """Reports an empty queue as an error."""

    async def take(self, queue: str) -> Delivery | None:
        delivery = await super().take(queue)
        if delivery is None:
            raise ClientError("refused", "no message", code=204)
        return delivery


@mutant("charset-is-applied", tag="data", breaks=["N4"])
class CharsetIsApplied(HttpApi):
    """Decodes bodies with the charset of their content type, and repairs what does not fit."""

    def delivery(self, response: Response) -> Delivery:
        if "charset=utf-8" in (response.header("content-type") or ""):
            response = response._replace(body=response.body.decode(errors="replace").encode())
        return super().delivery(response)


@mutant("redelivered-is-text", tag="data", breaks=["N18"])
class RedeliveredIsText(HttpApi):
    """Takes the text "false" for true."""

    def flag(self, text: str | None) -> bool | None:
        return bool(text)


@mutant("header-case-matters", tag="wire", breaks=["N4"])
class HeaderCaseMatters(HttpApi):
    """Knows custom metadata only in lower case."""

    def delivery(self, response: Response) -> Delivery:
        kept = [pair for pair in response.headers if not pair[0].startswith("X-Msg")]
        return super().delivery(response._replace(headers=kept))


# connections that are kept


@mutant("each-request-keeps-a-connection", tag="life-cycle", breaks=["X9"])
class EachRequestKeepsAConnection(HttpApi):
    """Opens a connection for each request, and lets go of none before the end."""

    async def _connection(self) -> HttpConnection:
        idle, self._idle = self._idle, []
        found = await super()._connection()
        self._busy |= OrderedSet(idle)
        return found


@mutant("dead-connection-is-kept", tag="life-cycle", breaks=["X6"])
class DeadConnectionIsKept(HttpConnection):
    """Does not notice that the server has ended a connection while no request was on it."""

    def _ended(self, text: str) -> None:
        if self._answer is not None:
            super()._ended(text)


# headers: a letter of Latin-1 stands for what the check of headers does not let through


class _MarksBack(HttpConnection):
    async def exchange(self, method: str, request: bytes) -> Response:
        head, end, body = request.partition(b"\r\n\r\n")
        return await super().exchange(method, head.translate(MARKS_BACK) + end + body)


MARKS = {ord("\n"): "\x85", ord("\r"): "\x84", 0: "\x83"}
MARKS_BACK = bytes.maketrans(b"\x85\x84\x83", b"\n\r\0")


@mutant("odd-marks-in-headers", tag="wire", breaks=["N3"], also=[_MarksBack])
class OddMarksInHeaders(HttpApi):
    """Sends a header whose value has the end of a line that is no pair, or a NUL."""

    def header_text(self, value: Any) -> str:
        text = super().header_text(value)
        return text if "\r\n" in text else text.translate(MARKS)


@mutant("empty-posts-without-a-length", tag="wire", breaks=["N3"])
class EmptyPostsWithoutALength(HttpConnection):
    """Leaves out the length of a body that is empty."""

    async def exchange(self, method: str, request: bytes) -> Response:
        return await super().exchange(method, request.replace(b"Content-Length: 0\r\n", b""))


@mutant("forbidden-means-not-let-in", tag="wording", breaks=["N16"])
class ForbiddenMeansNotLetIn(HttpApi):
    """Takes 403 for a user who is not let in."""

    def expect(self, response: Response, *wanted: int) -> None:
        if response.status == 403:
            raise ClientError("auth", self.error_text(response), code=403)
        super().expect(response, *wanted)
