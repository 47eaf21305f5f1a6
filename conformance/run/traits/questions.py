"""Which frame answers which, and what ops ask."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from conformance.run.facts import Facts, Question
from conformance.run.trace import Position
from conformance.run.view import Conn, SeenFrame
from fakebrokers.core.frames import Frame, Role

Args = Mapping[str, Any]


class Whole(dict[str, Any]):
    """A mapping of which an op returns all entries, not only those that it knows, and no others."""


class AnyOrder(list[Any]):
    """Items of which an op returns all, in whatever order."""


class OneOf(tuple[Any, ...]):
    """What an op may return, as it can be read in several ways."""


class Entries(NamedTuple):
    """What a question has entry by entry.

    Attributes:
        given: As the arguments of its op order them.
        asked: As the frame has them.
        own: Those that a client may add by itself.
    """

    given: Callable[[Args], Mapping[str, Any]]
    asked: Callable[[Any], Mapping[str, Any]]
    own: frozenset[str] = frozenset()


class Asks(NamedTuple):
    """An op that asks one question and returns its answer.

    Attributes:
        kind: The frame of the question; several where the op asks one after the other.
        fits: Whether a frame is what this op asks, from the op's arguments.
        value: What the op has to return for an answer, to be compared key by key; None: nothing.
        also: The same where it depends on the op's arguments too; added to `value`.
        apt: Whether an answer says anything about what this op asks, and every client has to make
            the same of it; None: all do.
        parts: Of an op that asks several questions, from its arguments: the kinds that each of them may have.
            All have to be accepted before it is done. None: any question will do.
        none: Whether what the op returned says that no answer came.
        entries: What of it has to be as the op's arguments order it, entry by entry; None: nothing.
        differs: What is otherwise in a question that does not fit than in the op's arguments, as a sentence
            without its subject, where that can be said.
        said: What a refusal says in words, and the op has to report: `text` and `type` of its error, where it
            is clear what they are.
    """

    kind: type[Frame] | tuple[type[Frame], ...]
    fits: Callable[[Args, Any], bool]
    value: Callable[[Any], Mapping[str, Any]] | None = None
    apt: Callable[[Args, Any], bool] | None = None
    parts: Callable[[Args], Sequence[tuple[type[Frame], ...]]] | None = None
    also: Callable[[Args, Any], Mapping[str, Any]] | None = None
    none: Callable[[Mapping[str, Any]], bool] | None = None
    entries: Entries | None = None
    differs: Callable[[Args, Any], str] | None = None
    said: Callable[[Any], Mapping[str, str]] | None = None


class Questions:
    """Which frame answers which, and what ops ask.

    Attributes:
        answers: Which frame of the server answers which of the client.
        questions: The other way round: what the server asks, and how the client answers.
        ops: The ops that ask a question each.
        creating: The ops that create something.
        answer_within_s: What a client may take to answer the server.
        ok, refusal: Codes of answers: yes, and a no that any answer can have.
        refusals: Further codes that answers are given: known ones, and such as nobody knows.
        subscribe_asks: Whether the op ``subscribe`` asks the server for something; if not, another op has.
        answers_move: Whether an answer finds its way over a later connection, so that a loss ends no
            question.
        passing: Codes of refusals that may be another answer the next time.
        unauthorized: Codes that say that the user is not let in, where there are any.
        refuses_by_itself: Codes with which a client refuses, without asking, what it knows to be refused.
    """

    answers: ClassVar[Mapping[type[Frame], type[Frame]]]
    questions: ClassVar[Mapping[type[Frame], type[Frame]]] = {}
    ops: ClassVar[Mapping[str, Asks]] = {}
    creating: ClassVar[tuple[str, ...]] = ()
    answer_within_s: ClassVar[float] = 1.0
    ok: ClassVar[Any] = 0
    refusal: ClassVar[Any] = 1
    refusals: ClassVar[Sequence[Any]] = ()
    subscribe_asks: ClassVar[bool] = True
    answers_move: ClassVar[bool] = False
    passing: ClassVar[tuple[Any, ...]] = ()
    unauthorized: ClassVar[tuple[Any, ...]] = ()
    refuses_by_itself: ClassVar[tuple[Any, ...]] = ()

    def is_answer(self, asked: Frame, frame: Frame) -> bool:
        """Whether a frame of the server, with the key of a question, is of a kind that answers it."""
        return self.answers[type(asked)] is type(frame)

    def is_opening(self, frame: Frame) -> bool:
        """Whether a question declares something that has to be there again after a loss."""
        return type(frame).spec.role_in("in") is Role.OPEN

    def is_astray(self, frame: Frame) -> bool:
        """Whether a question went where nothing is, so that nobody can tell which op asked it."""
        return False

    def target_of(self, frame: Frame) -> str | None:
        """The target that a question is about, as ops call it; None where it does not say."""
        return None

    def located(self, answer: Frame) -> Mapping[str, bool]:
        """Which targets an answer speaks of, and whether each can be used; most answers speak of none."""
        return {}

    def is_code(self, reported: Any, said: Any) -> bool:
        """Whether the code that an application got is that of the server: some have number and word."""
        return bool(reported == said)

    def is_reported_as(self, code: Any, text: str, said: Any) -> bool:
        """Whether what was reported to an application, with a code and a text, is the error of the server."""
        return self.is_code(code, said)

    def deadline_of(self, frame: Frame) -> float | None:
        """How long the client waits for the answer, seconds, if a question says so."""
        return None

    def is_silent(self, case: Any, question: Question, at: Position) -> bool:
        """Whether who has to answer has said nothing for so long that the client may take him for dead."""
        return False

    def accepts(self, frame: Any) -> bool:
        """Whether an answer says yes."""
        status = type(frame).spec.status
        return status is None or getattr(frame, status) == self.ok

    def opposite(self, frame: Any, code: Any) -> Frame | None:
        """The same answer with the contrary meaning; None if there is none.

        Args:
            code: Of `refusals`, what a refusal says; None: `refusal`.
        """
        status = type(frame).spec.status
        if status is None:
            return None
        other = (self.refusal if code is None else code) if self.accepts(frame) else self.ok
        opposite: Frame = msgspec.structs.replace(frame, **{status: other})
        return opposite


class Pairing:
    """Ties the answers on one connection to their questions, by kind and key. For `Reading.track`.

    Args:
        questions: Of the protocol.
    """

    def __init__(self, questions: Questions, conn: Conn, facts: Facts) -> None:
        self._conn = conn
        self._kinds = questions
        self._facts = facts
        self._tables = {
            "in": (questions.answers, facts.questions),
            "out": (questions.questions, facts.asked_back),
        }
        self._open: dict[tuple[str, Hashable], list[Question]] = {}

    def see(self, seen: SeenFrame) -> Question | None:
        """Take a frame; returns the question that it asks or answers first."""
        frame, direction = seen.frame, seen.direction
        table, found = self._tables[direction]
        if type(frame) in table:
            question = Question(self._conn, frame, key_of(frame), seen.at)
            self._open.setdefault((direction, question.key), []).append(question)
            found.append(question)
            return question
        other = "in" if direction == "out" else "out"
        key = key_of(frame)
        waiting = self._open.get((other, key), [])  # those without a key are answered in their order
        asked = next((one for one in waiting if self._answers(other, one.frame, frame)), None)
        if asked is None:
            return None
        waiting.remove(asked)
        asked.answer, asked.answered = frame, seen.at
        asked.accepted = self._kinds.accepts(frame)
        status = type(frame).spec.status
        asked.code = None if status is None else getattr(frame, status)
        return asked

    def _answers(self, direction: str, asked: Frame, frame: Frame) -> bool:
        if direction == "in":
            return self._kinds.is_answer(asked, frame)
        return self._kinds.questions[type(asked)] is type(frame)


def key_of(frame: Frame) -> Hashable:
    """What ties a question to its answer; None if the frame has nothing of the kind."""
    name = type(frame).spec.key if hasattr(type(frame), "spec") else None
    key: Hashable = getattr(frame, name, None) if name is not None else None
    return key
