"""Requests of one connection: correlation ids, answers, time-outs (docs/protocols/rabbitmq-stream.md, 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from conformance.clients.reference.kit import ClientError
from fakebrokers.errors import WireError
from fakebrokers.rabbitmq_stream.frames import Request

if TYPE_CHECKING:
    from conformance.clients.reference.rabbitmq_stream.connection import Connection

Done: TypeAlias = Callable[[Any], None]

ABANDONED_MAX = 1000


def refused(what: str, code: int) -> ClientError:
    """The server said no."""
    return ClientError("refused", f"{what}: the server answered with code {code}", code=code)


class Undo(NamedTuple):
    """The request that takes back what a late answer granted."""

    kind: type[Request]
    fields: tuple[Any, ...]


class Waiting(NamedTuple):
    """A request without an answer.

    Attributes:
        done: Called once, with the answer or a `ClientError`.
        deadline: When it is given up.
        undo: What to do if the server says yes after all.
    """

    kind: type[Request]
    done: Done
    deadline: float
    undo: Undo | None


class Requests:
    """The questions of one connection.

    Attributes:
        next_correlation: u32; wraps.
        waiting: By correlation id.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.next_correlation = 1
        self.waiting: dict[int, Waiting] = {}
        self._abandoned: dict[int, Undo] = {}

    def take_correlation(self) -> int:
        """A correlation id that no open request has."""
        while self.next_correlation in self.waiting:
            self.next_correlation = (self.next_correlation + 1) & 0xFFFFFFFF
        taken = self.next_correlation
        self.next_correlation = (taken + 1) & 0xFFFFFFFF
        return taken

    def ask(
        self, kind: type[Request], *fields: Any, done: Done, deadline: float, undo: Undo | None = None
    ) -> int:
        """Ask; returns the correlation id.

        Raises:
            ClientError: ``invalid``: a field does not fit the wire.
        """
        correlation_id = self.take_correlation()
        try:
            self.connection.send(kind(correlation_id, *fields))
        except WireError as error:
            raise ClientError("invalid", str(error)) from None
        self.waiting[correlation_id] = Waiting(kind, done, deadline, undo)
        return correlation_id

    def abandon(self, correlation_id: int) -> None:
        """Nobody waits for this answer any more."""
        waiting = self.waiting.pop(correlation_id, None)
        if waiting is not None and waiting.undo is not None and len(self._abandoned) < ABANDONED_MAX:
            self._abandoned[correlation_id] = waiting.undo

    def answered(self, frame: Any) -> None:
        """An answer came."""
        waiting = self.find_waiting(frame)
        if waiting is None:
            self.answered_late(frame)
        else:
            waiting.done(frame)

    def find_waiting(self, frame: Any) -> Waiting | None:
        """The request that this answers, which is then no longer open."""
        waiting = self.waiting.get(frame.correlation_id)
        if waiting is None or type(frame).__name__ != waiting.kind.__name__ + "Response":
            return None
        return self.waiting.pop(frame.correlation_id)

    def answered_late(self, frame: Any) -> None:
        """Nobody asked, or nobody waits any more: take back what was granted, else do nothing."""
        undo = self._abandoned.pop(frame.correlation_id, None)
        self.connection.owner.dropped(f"a {type(frame).__name__} for no open request")
        if self.connection.closing:
            return  # Close ends all that was granted, and nothing is asked after it
        if undo is not None and getattr(frame, "code", 0) == 1:
            deadline = self.connection.now + 10.0
            self.ask(undo.kind, *undo.fields, done=lambda _: None, deadline=deadline)

    def expire(self, now: float) -> None:
        """Give up the requests whose deadline has passed."""
        for correlation_id in [key for key, one in self.waiting.items() if one.deadline <= now]:
            waiting = self.waiting[correlation_id]
            self.abandon(correlation_id)
            waiting.done(ClientError("timeout", f"no answer to {waiting.kind.__name__}"))

    def end(self, error: ClientError) -> None:
        """The connection is gone, and no answer will come."""
        ended, self.waiting = self.waiting, {}
        for one in ended.values():
            one.done(error)

    def deadline(self) -> float | None:
        """When `expire` has something to do."""
        return min([one.deadline for one in self.waiting.values()], default=None)
