"""Producers with one defect in what they send, or in how they read an answer."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Answer, Producer, text_of
from conformance.clients.reference.pzq.sockets import Parts

Waiting = asyncio.Future[Answer]

# messages


@mutant("pending-in-words", tag="data", breaks=["P1"])
class PendingInWords(PzqClient):
    """Returns a word for the number of what is pending, once a publish has failed: no adapter may."""

    has_failed = False

    async def publish(self, body: Parts, id: bytes | None = None, timeout: float | None = None) -> Answer:
        try:
            return await super().publish(body, id, timeout)
        except ClientError:
            self.has_failed = True
            raise

    @property
    def pending(self) -> Any:
        return "unknown" if self.has_failed else super().pending


@mutant("req-socket", tag="wire", breaks=["P1"])
class ReqSocket(Producer):
    """Produces on a REQ socket, which puts an empty part in front."""

    kind = "REQ"

    def receive(self, parts: Parts) -> None:
        super().receive((next(iter(self.pending), b""), *parts))


@mutant("empty-parts-dropped", tag="data", breaks=["P1", "P11", "X12"])
class EmptyPartsDropped(Producer):
    """Leaves out the empty parts of a body."""

    def layout(self, id: bytes, body: Parts) -> Parts:
        return super().layout(id, tuple(filter(None, body)))


@mutant("ids-come-round", tag="data", breaks=["P1", "P6"], aims=["PZQ-1.13"])
class IdsComeRound(Producer):
    """Counts its ids to 150 and begins again."""

    def new_id(self) -> bytes:
        super().new_id()
        return b"%d" % (self._number % 150)


@mutant("ids-as-text", tag="wire", breaks=["P1"])
class IdsAsText(Producer):
    """Takes ids for text, and replaces what is none."""

    def layout(self, id: bytes, body: Parts) -> Parts:
        return super().layout(id if id.startswith(self._prefix) else text_of(id).encode(), body)


@mutant("takes-an-id-twice", tag="data", breaks=["P1", "P6"])
class TakesAnIdTwice(Producer):
    """Sends a message under an id that another one waits under: the first one never gets its outcome."""

    def check(self, id: bytes, body: Parts) -> None:
        super().check(b"", body)


@mutant("id-alone", tag="wire", breaks=["P1"])
class IdAlone(Producer):
    """Sends the id alone when the body has no parts."""

    def layout(self, id: bytes, body: Parts) -> Parts:
        return super().layout(id, body) if body != (b"",) else (id,)

    async def publish(self, body: Parts, id: bytes | None = None, timeout: float | None = None) -> Answer:
        return await super().publish(body or (b"",), id, timeout)


# answers


@mutant("sixteen-answers", tag="life-cycle", breaks=["P3", "P4"])
class SixteenAnswers(Producer):
    """Has room for 16 answers and reads no more."""

    seen = 0

    def receive(self, parts: Parts) -> None:
        self.seen += 1
        if self.seen <= 16:
            super().receive(parts)


@mutant("any-answer-is-good", tag="data", breaks=["P3", "P4"])
class AnyAnswerIsGood(Producer):
    """Takes every answer for an acknowledgement."""

    def stored(self, status: bytes) -> bool:
        return True


@mutant("only-zero-refuses", tag="data", breaks=["P3", "P4"])
class OnlyZeroRefuses(Producer):
    """Takes every status but 0 for an acknowledgement."""

    def stored(self, status: bytes) -> bool:
        return status != b"0"


@mutant("begins-with-one", tag="data", breaks=["P4"])
class BeginsWithOne(Producer):
    """Looks at the first byte of the status only."""

    def stored(self, status: bytes) -> bool:
        return status[:1] == b"1"


@mutant("reason-at-index-3", tag="wording", breaks=["P2", "P3"])
class ReasonAtIndex3(Producer):
    """Takes the fourth part for the reason, whatever headers there are."""

    def read(self, parts: Parts) -> Answer:
        return super().read(parts)._replace(texts=parts[3:4])


@mutant("exactly-three-parts", tag="wire", breaks=["P2", "P3", "X5"])
class ExactlyThreeParts(Producer):
    """Takes a positive answer with a text or headers for malformed."""

    def read(self, parts: Parts) -> Answer:
        answer = super().read(parts)
        if answer.status == b"1" and len(parts) != 3:
            raise ClientError("protocol", f"expected [id][1][], got {len(parts)} parts")
        return answer


@mutant("id-is-enough", tag="wire", breaks=["P3"])
class IdIsEnough(Producer):
    """Takes an id without a status for an acknowledgement."""

    def read(self, parts: Parts) -> Answer:
        return Answer(parts[0], b"1", ()) if len(parts) == 1 else super().read(parts)


@mutant("reasons-are-utf8", tag="wire", breaks=["P3"])
class ReasonsAreUtf8(Producer):
    """Decodes all texts strictly, and the answer is lost where that fails."""

    def reason(self, answer: Answer) -> str:
        return "; ".join(text.decode() for text in answer.texts)


@mutant("reasons-are-hidden", tag="wording", breaks=["P3", "P4"])
class ReasonsAreHidden(Producer):
    """Says of a refused message only that it was refused."""

    def reason(self, answer: Answer) -> str:
        return "refused"


# whose answer it is


@mutant("answer-by-position", tag="data", breaks=["P3", "P4", "X8"], aims=["PZQ-1.21"])
class AnswerByPosition(Producer):
    """Gives each answer to the oldest message that waits, whatever its id."""

    def find(self, answer: Answer) -> Waiting | None:
        return next((waiting for waiting in self.pending.values() if not waiting.done()), None)


@mutant("answers-are-kept", tag="data", breaks=["P4", "X8"])
class AnswersAreKept(Producer):
    """Keeps an answer that no call waits for, and takes it for the next message's."""

    kept: Answer | None = None

    def find(self, answer: Answer) -> Waiting | None:
        waiting = super().find(answer)
        if waiting is None or waiting.done():
            self.kept = answer
        return waiting

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        if self.kept is not None:
            self.settle(self.kept, waiting)
            self.kept = None
        return await super().acknowledged(message, waiting, timeout)


@mutant("foreign-answer-is-fatal", tag="data", breaks=["P4"])
class ForeignAnswerIsFatal(Producer):
    """Fails everything that waits when an answer has an unknown id."""

    def find(self, answer: Answer) -> Waiting | None:
        if answer.id not in self.pending:
            for waiting in self.pending.values():
                if not waiting.done():
                    waiting.set_exception(ClientError("protocol", f"an answer for {answer.id!r}"))
        return super().find(answer)


@mutant("answers-of-any-session", tag="data", breaks=["P1"])
class AnswersOfAnySession(Producer):
    """Numbers the messages of each session from 1 and looks for their answers in all of them."""

    everybody: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, list[Producer]]] = WeakKeyDictionary()

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.others = self.everybody.setdefault(asyncio.get_running_loop(), [])

    def new_id(self) -> bytes:
        super().new_id()
        if self not in self.others:
            self.others.append(self)
        return b"%d" % self._number

    def find(self, answer: Answer) -> Waiting | None:
        found = (one.pending.get(answer.id) for one in self.others)
        return next((waiting for waiting in found if waiting is not None and not waiting.done()), None)

    def close(self) -> None:
        self.others.clear()
        super().close()


@mutant("once-more-after-the-deadline", tag="data", breaks=["P3"])
class OnceMoreAfterTheDeadline(Producer):
    """Writes a message once more a second after its publish has timed out."""

    async def acknowledged(
        self, message: Parts, waiting: asyncio.Future[Answer], timeout: float | None
    ) -> Answer:
        try:
            return await super().acknowledged(message, waiting, timeout)
        except TimeoutError:
            asyncio.get_running_loop().call_later(1.0, self.repeat, message)
            raise


@mutant("answers-are-found-as-text", tag="data", breaks=["P1", "P4"])
class AnswersAreFoundAsText(Producer):
    """Takes ids for one whose bytes are no UTF-8 in the same places."""

    def find(self, answer: Answer) -> Waiting | None:
        name = text_of(answer.id)
        return next((waiting for id, waiting in self.pending.items() if text_of(id) == name), None)


@mutant("ids-end-at-a-nul", tag="data", breaks=["P1", "P4"])
class IdsEndAtANul(Producer):
    """Looks ids up without what follows their first NUL."""

    def find(self, answer: Answer) -> Waiting | None:
        name = answer.id.partition(b"\0")[0]
        if not name:
            return super().find(answer)
        return next((one for id, one in self.pending.items() if id.partition(b"\0")[0] == name), None)
