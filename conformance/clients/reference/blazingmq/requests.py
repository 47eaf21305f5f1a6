"""Control requests and their answers, by number."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.codes import Category
from fakebrokers.blazingmq.frames import Request, Response, StatusResponse

if TYPE_CHECKING:
    from conformance.clients.reference.blazingmq.link import Link

Make = Callable[[int], Request]


class Waiting(NamedTuple):
    """A request without an answer.

    Attributes:
        kind: Of the answer.
        late: What to do with one that comes after the time-out.
    """

    answer: asyncio.Future[Response]
    kind: str
    late: Callable[[], None] | None


class Requests:
    """Those of one connection; their numbers go on rising on the next one."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.waiting: dict[int, Waiting] = {}

    @property
    def pending(self) -> int:
        """Requests that a task waits for."""
        return sum(not one.answer.done() for one in self.waiting.values())

    def next_id(self) -> int:
        """A number that was never used."""
        self.link.client.last_request += 1
        return self.link.client.last_request

    async def ask(self, make: Make, timeout: float, late: Callable[[], None] | None = None) -> Any:
        """Send a request and wait for its answer.

        Raises:
            ClientError: It was refused, there was none in time, or there could not be one.
        """
        if self.link.state != "open":
            raise ClientError("connection", "the connection is gone", definite=True)
        number = self.next_id()
        request = make(number)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.waiting[number] = Waiting(answer, f"{request.kind}Response", late)
        self.link.send(request)
        try:
            async with asyncio.timeout(max(0.0, timeout)):
                return await answer
        except (TimeoutError, asyncio.CancelledError) as error:
            came = answer.done() and not answer.cancelled() and answer.exception() is None
            if came and late is not None:  # in this very turn, and nobody takes it
                late()
            if isinstance(error, asyncio.CancelledError):
                raise
            raise ClientError("timeout", f"{request.kind}: no answer after {timeout:.3f} s") from None
        finally:
            self.forget(number, answer)

    def forget(self, number: int, answer: asyncio.Future[Response]) -> None:
        """No one waits any more; an answer that has something to undo is still recognised."""
        found = self.waiting.get(number)
        if found is not None and (found.late is None or not answer.cancelled()):
            del self.waiting[number]

    def answered(self, frame: Response) -> None:
        """An answer came."""
        found = self.waiting.get(frame.r_id) if frame.r_id is not None else None
        if found is None:
            self.link.note(f"a {frame.kind} for request {frame.r_id}, which does not wait")
            return
        if not isinstance(frame, StatusResponse) and frame.kind != found.kind:
            self.link.trouble(ClientError("protocol", f"a {frame.kind} instead of a {found.kind}"))
            return
        self.complete(frame, found)

    def complete(self, frame: Response, found: Waiting) -> None:
        """The request of that number ends with this answer."""
        assert frame.r_id is not None
        del self.waiting[frame.r_id]
        if found.answer.done():
            if found.late is not None and not isinstance(frame, StatusResponse):
                found.late()
        elif isinstance(frame, StatusResponse):
            found.answer.set_exception(refused(frame))
        else:
            found.answer.set_result(frame)

    def give_up(self, error: ClientError, but: str) -> None:
        """Nobody waits for answers any more, unless they are of the kind `but`."""
        kept = {number: one for number, one in self.waiting.items() if one.kind == but}
        self.waiting = {number: one for number, one in self.waiting.items() if number not in kept}
        self.end(error)
        self.waiting.update(kept)

    def end(self, error: ClientError) -> None:
        """No answer comes any more."""
        waiting, self.waiting = self.waiting, {}
        for one in waiting.values():
            if not one.answer.done():
                one.answer.set_exception(ClientError(error.kind, error.text, definite=False))


def refused(frame: StatusResponse) -> ClientError:
    """The error of a status."""
    known = frame.category in set(Category)
    name = Category(frame.category).name if known else str(frame.category)
    return ClientError("refused", f"{name}: {frame.message}", code=frame.category)
