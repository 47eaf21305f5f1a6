"""Defects in requests and their answers (catalogue section RMQS-2)."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.rabbitmq_stream.deaf import DeafConnection
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.links import Links
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.requests import Requests, Waiting, refused
from fakebrokers.core.frames import Malformed
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import Close, StreamFrame


@mutant("answers-in-order", tag="data", breaks=["R3", "X8"])
class AnswersInOrder(Requests):
    """Gives an answer to the oldest open request of its kind, whatever its correlation id."""

    def find_waiting(self, frame: Any) -> Waiting | None:
        for correlation_id, one in self.waiting.items():
            if type(frame).__name__ == one.kind.__name__ + "Response":
                return self.waiting.pop(correlation_id)
        return None


@mutant("stray-answer-ends-a-request", tag="life-cycle", breaks=["R3", "X8"])
class StrayAnswerEndsARequest(Requests):
    """An answer that no call waits for fails the oldest request that is open."""

    def answered_late(self, frame: Any) -> None:
        for correlation_id in list(self.waiting)[:1]:
            self.waiting.pop(correlation_id).done(ClientError("protocol", "an unexpected answer"))


@mutant("stray-answer-is-fatal", tag="wire", breaks=["R3", "X8"], also=[DeafConnection])
class StrayAnswerIsFatal(Requests):
    """Its reader ends when an answer comes that no call waits for."""

    def answered_late(self, frame: Any) -> None:
        connection: Any = self.connection
        connection.go_deaf()


@mutant("late-answer-counts", tag="data", breaks=["R3", "X8"])
class LateAnswerCounts(Requests):
    """A late answer is given to the next request of the same kind."""

    def answered_late(self, frame: Any) -> None:
        for correlation_id, one in list(self.waiting.items()):
            if type(frame).__name__ == one.kind.__name__ + "Response":
                self.waiting.pop(correlation_id).done(frame)
                return


@mutant("given-up-id-again", tag="data", breaks=["R3", "X8"])
class GivenUpIdAgain(Requests):
    """Asks its next question with the id of one that it has given up, and that may still be answered."""

    def abandon(self, correlation_id: int) -> None:
        super().abandon(correlation_id)
        self.next_correlation = correlation_id


@mutant("lowest-number-first", tag="data", breaks=["R3"])
class LowestNumberFirst(Connection):
    """Gives a publisher the number of another one, whose deletion the server has not confirmed."""

    def free_publisher_id(self) -> int:
        self._next_publisher_id = -1
        return super().free_publisher_id()


@mutant("top-bit-ignored", tag="wire", breaks=["R2", "R3"])
class TopBitIgnored(Connection):
    """Takes a frame for an answer although its key has no top bit."""

    def close_asked(self, frame: Close) -> None:
        if (waiting := self.requests.waiting.pop(frame.correlation_id, None)) is not None:
            waiting.done(frame)
        super().close_asked(frame)

    def malformed(self, frame: Malformed) -> None:
        if frame.code == "unknown" and len(frame.data) >= 14:
            body = bytes([frame.data[4] | 0x80]) + frame.data[5:]
            again = self.codec.decode(body)
            if not isinstance(again, Malformed):
                self.handle(again)
                return
        super().malformed(frame)


@mutant("no-request-timeout", tag="life-cycle", breaks=["R3", "X3", "X8"])
class NoRequestTimeout(Requests):
    """Waits for an answer forever."""

    def expire(self, now: float) -> None:
        pass

    def deadline(self) -> float | None:
        return None


@mutant("timed-out-requests-stay", tag="life-cycle", breaks=["R3", "X8", "X9"])
class TimedOutRequestsStay(Requests):
    """Reports a time-out, but keeps the request in its table."""

    def abandon(self, correlation_id: int) -> None:
        one = self.waiting[correlation_id]
        self.waiting[correlation_id] = Waiting(one.kind, lambda _: None, float("inf"), None)


@mutant("loss-leaves-requests-open", tag="life-cycle", breaks=["R1", "R3", "X2", "X6"])
class LossLeavesRequestsOpen(Requests):
    """Forgets the open requests when the connection is lost."""

    def end(self, error: ClientError) -> None:
        if error.kind != "connection" or self.connection.state == "new":
            super().end(error)


@mutant("requests-after-a-loss-hang", tag="life-cycle", breaks=["R3", "X6", "X8"])
class RequestsAfterALossHang(Links):
    """A request that is made while there is no connection waits for its time-out."""

    async def control_link(self, deadline: float) -> Link:
        if self.control is None and self.is_reconnecting:
            await asyncio.sleep(deadline - self.runtime.clock.now())
            raise ClientError("timeout", "no answer")
        return await super().control_link(deadline)


@mutant("loss-answers-requests", tag="data", breaks=["R3"])
class LossAnswersRequests(Requests):
    """Takes the requests that were open at the loss of the connection for done."""

    def end(self, error: ClientError) -> None:
        for correlation_id, one in list(self.waiting.items()):
            head = (one.kind.KEY | 0x8000).to_bytes(2) + b"\0\1"
            answer = self.connection.codec.decode(head + correlation_id.to_bytes(4) + b"\0\1" + bytes(8))
            if not isinstance(answer, Malformed) and hasattr(answer, "code"):
                del self.waiting[correlation_id]
                one.done(answer)
        super().end(error)


@mutant("correlation-id-never-wraps", tag="wire", breaks=["R3"])
class CorrelationIdNeverWraps(Requests):
    """Counts correlation ids beyond 32 bits."""

    def take_correlation(self) -> int:
        taken = self.next_correlation
        self.next_correlation += 1
        return taken


@mutant("refusals-are-all-alike", tag="wording", breaks=["R5"])
class StreamRefusalsAreAllAlike(Link):
    """Reports every refusal as the same internal error."""

    async def ask(self, kind: Any, *fields: Any, deadline: float, **more: Any) -> Any:
        answer = await self.request(kind, *fields, deadline=deadline, **more)
        if answer.code != Code.OK:
            raise refused(kind.__name__, Code.INTERNAL_ERROR)
        return answer


@mutant("unknown-code-is-fine", tag="data", breaks=["R5", "R20", "X5"])
class UnknownCodeIsFine(Link):
    """Takes a response code that it does not know for success."""

    async def ask(self, kind: Any, *fields: Any, deadline: float, **more: Any) -> Any:
        answer = await self.request(kind, *fields, deadline=deadline, **more)
        if answer.code != Code.OK and answer.code in {code.value for code in Code}:
            raise refused(kind.__name__, answer.code)
        return answer


@mutant("unknown-code-stops-the-reader", tag="wire", breaks=["R5", "R7", "R20", "X5"])
class UnknownCodeStopsTheReader(DeafConnection):
    """Its reader ends when it sees a response code that it does not know."""

    def answered(self, frame: Any) -> None:
        self._look(getattr(frame, "code", Code.OK))
        if not self.is_deaf:
            super().answered(frame)

    def publish_refused(self, frame: Any) -> None:
        for _, code in frame.errors:
            self._look(code)
        if not self.is_deaf:
            super().publish_refused(frame)

    def metadata_updated(self, frame: Any) -> None:
        self._look(frame.code)
        if not self.is_deaf:
            super().metadata_updated(frame)

    def _look(self, code: int) -> None:
        if code not in {known.value for known in Code}:
            self.go_deaf()


@mutant("create-always-works", tag="data", breaks=["R5", "R13"])
class CreateAlwaysWorks(StreamClient):
    """Says that a stream was created although the server has refused it."""

    async def create(self, *args: Any, **more: Any) -> None:
        try:
            await super().create(*args, **more)
        except ClientError as error:
            if error.code not in (Code.STREAM_ALREADY_EXISTS, Code.PRECONDITION_FAILED):
                raise


@mutant("long-references-are-cut", tag="data", breaks=["R4", "R6"])
class LongReferencesAreCut(Publishing):
    """Cuts a publisher's reference to 255 bytes."""

    def publisher(self, stream: str, name: str | None = None) -> Publisher:
        cut = None if name is None else name.encode()[:255].decode(errors="ignore")
        return super().publisher(stream, cut)


@mutant("length-in-characters", tag="wire", breaks=["R4"])
class LengthInCharacters(Connection):
    """Writes the length of a string in characters instead of bytes."""

    def send(self, frame: StreamFrame) -> None:
        super().send(frame)
        texts = [value for value in (getattr(frame, name) for name in frame.__struct_fields__)]
        for text in texts:
            if isinstance(text, str) and not text.isascii() and self._out:
                data = text.encode()
                right = len(data).to_bytes(2) + data
                self._out[-1] = self._out[-1].replace(right, len(text).to_bytes(2) + data)


@mutant("null-stops-the-reader", tag="wire", breaks=["R4"], aims=["RMQS-2.14"])
class NullStopsTheReader(DeafConnection):
    """Its reader ends when a string is null."""

    def answered(self, frame: Any) -> None:
        properties = getattr(frame, "properties", {})
        if properties is None or None in properties.values():
            self.go_deaf()
        else:
            super().answered(frame)


@mutant("writes-into-the-void", tag="life-cycle", breaks=["R3", "X6"])
class WritesIntoTheVoid(Link):
    """A request on a connection that is gone waits for its time-out."""

    async def request(self, *args: Any, deadline: float, **more: Any) -> Any:
        if not self.is_open:
            await asyncio.sleep(max(0.0, deadline - self.client.runtime.clock.now()))
            raise ClientError("timeout", "no answer")
        return await super().request(*args, deadline=deadline, **more)
