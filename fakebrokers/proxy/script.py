"""What a recorded server says to one client, frame by frame, with the keys that the client has chosen.

A frame of the client takes the place of one that was recorded: of the same kind, and if there are several the
first that says the same but for its keys. Batches are taken item by item, however the client cuts them. What
the server said to those frames is due then:

* an answer, once the question with its key has come (of a batch: the items whose questions have come);
* anything else, once the frame that was heard last before it has come.

What is due is said in the order of the recording.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from fakebrokers.core.frames import Frame, Role, kind_of
from fakebrokers.proxy.recording import Line, digest_of, innermost, scope_of

#: The roles of answers by the role of the question; besides, an answer may have the question's own.
_ANSWERS = {
    Role.PUBLISH: {Role.CONFIRM, Role.REJECT},
    Role.REQUEST: {Role.RESPONSE},
    Role.OPEN: {Role.RESPONSE},
    Role.SHUT: {Role.RESPONSE},
    Role.HANDSHAKE: {Role.RESPONSE},
}


#: Seconds within which a sign of life is answered; other signs come in intervals of a second or more.
_PROMPT_S = 0.5


class Due(NamedTuple):
    """Something to say.

    Attributes:
        line: As it was recorded; ``end``: the server ended the connection.
        indices: Of a batch: the items that are due; None: all.
        keys: The client's keys of the frame, or of these items; empty: as recorded.
        scope: What the client's keys count in; None: as recorded.
    """

    line: Line
    indices: tuple[int, ...] | None = None
    keys: tuple[Any, ...] = ()
    scope: Any = None


class _Question:
    """A frame of the client that was recorded.

    Attributes:
        came: The client's own keys of what has come of it.
        scope: What they count in.
        size: How many there are; 1 for a frame without a key.
    """

    def __init__(self, line: Line) -> None:
        self.line = line
        self.came: list[Any] = []
        self.scope: Any = None
        self.size = max(1, len(line.keys))

    @property
    def complete(self) -> bool:
        return len(self.came) == self.size

    def may_be_answered_by(self, line: Line) -> bool:
        role = Role(self.line.role)
        fits = line.role == role or line.role in _ANSWERS.get(role, ())
        return fits and line.scope == self.line.scope

    def place_of(self, key: Any) -> int | None:
        """Where a recorded key stands in it."""
        return self.line.keys.index(key) if key in self.line.keys else None


class _Asked(NamedTuple):
    """The item of a question that an item of an answer belongs to."""

    question: _Question
    place: int

    @property
    def has_come(self) -> bool:
        return len(self.question.came) > self.place

    @property
    def key(self) -> Any:
        return self.question.came[self.place]


class _Answer:
    """A frame of the server that was recorded, as far as it was not said yet.

    Args:
        asked: For each of its keys the question, as far as there is one.
        behind: The frame of the client after which it was said.
    """

    def __init__(self, line: Line, asked: Sequence[_Asked | None], behind: _Question | None) -> None:
        self.line = line
        self._asked = asked
        self._behind = behind
        self._by_item = bool(asked) and all(asked)
        self._left = list(range(len(asked))) if self._by_item else [0]

    @property
    def said(self) -> bool:
        return not self._left

    def due(self) -> Due | None:
        """What of it can be said now."""
        return self._due_items() if self._by_item else self._due_whole()

    def _due_whole(self) -> Due | None:
        """As it was recorded: nobody asked for it, or not for all of it."""
        if self._behind is not None and not self._behind.complete:
            return None
        self._left = []
        return Due(self.line)

    def _due_items(self) -> Due | None:
        found = {at: asked for at in self._left if (asked := self._asked[at]) is not None and asked.has_come}
        if not found:
            return None
        self._left = [at for at in self._left if at not in found]
        keys = tuple([asked.key for asked in found.values()])
        scope = next(iter(found.values())).question.scope
        whole = len(found) == len(self._asked)
        return Due(self.line, None if whole else tuple(found), keys, scope)


class Script:
    """One recorded connection.

    Args:
        lines: Of this connection, in order.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self._waiting: dict[str, deque[_Question]] = {}
        self._answers: list[_Answer] = []
        self._heartbeats = _answered_signs(lines)
        asked: list[_Question] = []
        for line in lines:
            if line.role == Role.HEARTBEAT:
                continue
            if line.what == "heard":
                asked.append(_Question(line))
                self._waiting.setdefault(line.kind, deque()).append(asked[-1])
            elif line.what == "said" or line.by == "server":
                self._answers.append(_answer(line, asked))

    def begin(self) -> list[Due]:
        """What the server says before it has heard anything."""
        return self._due()

    def hear(self, frame: Frame) -> list[Due] | None:
        """What the server says to a frame of the client; None if no such frame was recorded, or no more."""
        frame = innermost(frame)
        if frame.spec.role_in("in") is Role.HEARTBEAT:
            return self._hear_heartbeat(frame)
        taken = self._take_items(frame) if frame.spec.items is not None else self._take(frame)
        return self._due() if taken else None

    def _hear_heartbeat(self, frame: Frame) -> list[Due]:
        """However often they come, each is answered as the last one was."""
        if kind_of(frame) not in self._heartbeats:
            return []
        asked, line = self._heartbeats[kind_of(frame)]
        same_key = frame.spec.key and line.keys == asked.keys
        return [Due(line, keys=(getattr(frame, str(frame.spec.key)),) if same_key else ())]

    def _take(self, frame: Frame) -> bool:
        waiting = self._waiting.get(kind_of(frame))
        if not waiting:
            return False
        digest = digest_of(frame)
        question = next((each for each in waiting if each.line.digest == digest), waiting[0])
        waiting.remove(question)
        question.came = [getattr(frame, frame.spec.key) if frame.spec.key else None]
        question.scope = _scope_value(frame)
        return True

    def _take_items(self, frame: Frame) -> bool:
        """The items of the frame take the place of recorded ones, in order."""
        assert frame.spec.items is not None
        waiting = self._waiting.get(kind_of(frame), deque())
        scope, keys = scope_of(frame), deque(frame.spec.items.keys(frame))
        taken = False
        for question in [each for each in waiting if each.line.scope == scope] or list(waiting):
            if not keys:
                break
            question.scope = _scope_value(frame)
            while keys and not question.complete:
                question.came.append(keys.popleft())
            if question.complete:
                waiting.remove(question)
            taken = True
        return taken

    def _due(self) -> list[Due]:
        found = [answer.due() for answer in self._answers]
        self._answers = [answer for answer in self._answers if not answer.said]
        return [due for due in found if due is not None]


def _answered_signs(lines: Sequence[Line]) -> dict[str, tuple[Line, Line]]:
    """By its kind: a sign of life of the client, and the server's answer to it.

    That is the one with its key. Signs without keys belong together by time alone. What the client says right
    after a sign of the server is an answer itself: to answer it would go round in circles.
    """
    found: dict[str, tuple[Line, Line]] = {}
    with_key: dict[tuple[Any, ...], Line] = {}
    answers: set[str] = set()
    sign = last = None
    for line in [each for each in lines if each.role == Role.HEARTBEAT]:
        prompt = last is not None and last.what != line.what and line.at - last.at <= _PROMPT_S
        if line.what == "heard":
            answers |= {line.kind} if prompt else set()
            sign = with_key[line.keys] = line
        elif line.keys and line.keys in with_key:
            asked = with_key[line.keys]
            found[asked.kind] = asked, line
        elif sign is not None and prompt and sign.kind not in answers:
            found.setdefault(sign.kind, (sign, line))
        last = line
    return found


def _answer(line: Line, asked: Sequence[_Question]) -> _Answer:
    found = [_asked_for(line, key, asked) for key in line.keys] if line.what == "said" else []
    return _Answer(line, found, asked[-1] if asked else None)


def _asked_for(line: Line, key: Any, asked: Sequence[_Question]) -> _Asked | None:
    """The last question that this key of an answer belongs to."""
    for question in reversed(asked):
        if question.may_be_answered_by(line) and (place := question.place_of(key)) is not None:
            return _Asked(question, place)
    return None


def _scope_value(frame: Frame) -> Any:
    return getattr(frame, frame.spec.scope) if frame.spec.scope else None
