"""What the frames of one connection mean, in order (docs/protocols/redis.md, "What goes over the wire")."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from conformance.run.facts import ArrivedFrame, Facts, Question, Record, Refused, Settled, Window, Written
from conformance.run.trace import Position
from conformance.run.view import Conn
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.redis import frames as f
from fakebrokers.redis import resp
from fakebrokers.redis.codec import RedisCodec

#: The kinds that begin and end subscriptions, with the kind of message that comes by them.
OPENING: dict[type[Frame], type[Frame]] = {
    f.Subscribe: f.Message,
    f.Psubscribe: f.Pmessage,
    f.Ssubscribe: f.Smessage,
}
WAYS = {f.Subscribe: "channel", f.Psubscribe: "pattern", f.Ssubscribe: "shard"}
ENDING: dict[type[Frame], type[Frame]] = {
    f.Unsubscribe: f.Message,
    f.Punsubscribe: f.Pmessage,
    f.Sunsubscribe: f.Smessage,
}
MESSAGES = f.Message | f.Pmessage | f.Smessage
ENDED = {kind.__name__.lower(): of for kind, of in ENDING.items()}
#: What a client with subscriptions may say in RESP2 besides those (document, "Life of a connection").
ALLOWED = ("PING", "QUIT", "RESET")
#: Commands by which libraries set their connections up, besides HELLO and AUTH.
SET_UP = ("CLIENT", "INFO", "SELECT", "COMMAND")
#: With what a server turns away who has not the credentials.
DENIED = ("NOAUTH", "WRONGPASS", "NOPERM")
BLOCKING = ("BLPOP", "BRPOP", "BRPOPLPUSH", "BLMPOP", "BLMOVE")

#: A client that has given a reply up may give its connection up with it, at once or later.
OVERDUE_S = 0.5


def code_of(text: str) -> str:
    """The kind of an error: its first word, as text."""
    return resp.raw(text).decode(errors="replace").partition(" ")[0]


def array_of(frame: Frame) -> Any:
    """The array that a message, or a change of subscriptions, is on the wire."""
    return resp.read(RedisCodec().encode(frame), 0)[0]


class Tracking:
    """One pass over a connection: replies belong to commands by their order."""

    def __init__(self, conn: Conn, facts: Facts) -> None:
        self.conn = conn
        self.facts = facts
        self._waiting: deque[Question] = deque()
        self._asked: list[Question] = []
        self._left: dict[int, list[str]] = {}  #: names of a command that have no answer of their own yet
        self._windows: dict[tuple[type[Frame], str], Window] = {}
        self._resp3 = False
        self._count = 0
        self._is_in = False  #: whether the server has carried anything out

    def run(self) -> None:
        """Note all frames of the connection."""
        first = next((type(seen.frame) for seen in self.conn.of("in")), None)
        if first not in (f.Hello, f.Auth):
            self.conn.ready = self.conn.accepted
        for seen in self.conn.frames:
            if isinstance(seen.frame, Malformed | f.Blank):
                continue
            if seen.direction == "in":
                self._said(seen.frame, seen.at)
            else:
                self._came(seen.frame, seen.at)
        for window in self._windows.values():
            window.closed = window.closed or self.conn.ended
        for one in self._asked:
            if one.answered is None or one.answered.t - one.asked.t > OVERDUE_S:
                self.conn.unwanted = self.conn.unwanted or one.asked

    # the client

    def _said(self, frame: Any, at: Position) -> None:
        question = Question(self.conn, frame, None, at)
        self._waiting.append(question)
        self._asked.append(question)
        if isinstance(frame, f.Publish | f.Spublish):
            self._count += 1
            question.key = (frame.channel, "", f"{self.conn.name}#{self._count}")
            self.facts.written.append(Written(self.conn, at, question.key, frame.payload))
            self._check(frame.verb, at)
            return
        self.facts.questions.append(question)
        if type(frame) in OPENING:
            self._left[id(question)] = list(frame.channels)
            for name in frame.channels:
                key = OPENING[type(frame)], name
                former = self._windows.get(key)
                if former is None or former.opened:
                    self._windows[key] = Window(self.conn, name, name, None, at, {"way": WAYS[type(frame)]})
                    self.facts.windows.append(self._windows[key])
                    if former is not None:
                        former.closed = at
        elif type(frame) in ENDING:
            kind = ENDING[type(frame)]
            names = frame.channels or [name for of, name in self._windows if of is kind]
            self._left[id(question)] = list(names) or [""]
            for name in names:
                if (window := self._windows.get((kind, name))) is not None:
                    window.unsubscribed = at
        elif isinstance(frame, f.Command):
            self._command(frame, at)

    def _command(self, frame: f.Command, at: Position) -> None:
        verb = frame.verb.upper()
        if verb in BLOCKING:
            self.conn.is_session = False
        if verb == "QUIT":
            self.conn.client_closing = self.conn.client_closing or at
        elif verb not in ALLOWED:
            self._check(verb, at)

    def _check(self, verb: str, at: Position) -> None:
        if not self._resp3 and any(one.opened for one in self._windows.values()):
            text = f"{verb} on {self.conn.name}, which has subscriptions in RESP2"
            self.facts.broken.append((at, text))

    # the server

    def _came(self, frame: Any, at: Position) -> None:
        if not (self._resp3 or self._has_opened) and isinstance(frame, f.Subscribed | MESSAGES):
            frame = f.Reply(array_of(frame))
        if isinstance(frame, MESSAGES):
            self._message(frame, at)
        elif isinstance(frame, f.Subscribed):
            self._subscribed(frame, at)
        elif not (isinstance(frame, f.Reply) and isinstance(frame.value, resp.Push)):
            self._replied(frame, at)

    @property
    def _has_opened(self) -> bool:
        """Whether the client has asked for messages; else an array is a reply in RESP2, whatever is in it."""
        return any(type(one.frame) in OPENING for one in self._asked)

    def _message(self, frame: Any, at: Position) -> None:
        name = frame.pattern if isinstance(frame, f.Pmessage) else frame.channel
        window = self._windows.get((type(frame), name))
        if window is not None:
            window.arrivals.append(ArrivedFrame(at, (Record(None, frame.payload),)))

    def _subscribed(self, frame: f.Subscribed, at: Position) -> None:
        if not self._waiting or id(self._waiting[0]) not in self._left:
            self.conn.unwanted = self.conn.unwanted or at
            ended = self._windows.pop((ENDED.get(frame.action, f.Reply), frame.channel or ""), None)
            if ended is not None:
                ended.closed = at
            return
        question = self._waiting[0]
        left, kind = self._left[id(question)], type(question.frame)
        name = frame.channel or ""
        if name in left:
            left.remove(name)
        if kind in OPENING and (window := self._windows.get((OPENING[kind], name))):
            window.opened = window.opened or at
        elif kind in ENDING and (window := self._windows.pop((ENDING[kind], name), None)):
            window.closed = at
        if not left:
            self._waiting.popleft()
            self._answered(question, frame, at)

    def _replied(self, frame: Any, at: Position) -> None:
        if not self._waiting:
            self.conn.unwanted = self.conn.unwanted or at
            return
        question = self._waiting.popleft()
        self._answered(question, frame, at)
        if question.key is not None:
            self._settle(question, frame, at)
        elif type(question.frame) in OPENING and question.accepted is False:
            self._refuse(question, at)
        elif isinstance(question.frame, f.Hello | f.Auth):
            self._greeted(question, at)

    def _answered(self, question: Question, frame: Frame, at: Position) -> None:
        question.answer, question.answered = frame, at
        question.accepted = not isinstance(frame, f.RedisError)
        self._is_in = self._is_in or question.accepted
        if isinstance(frame, f.RedisError):
            question.code = code_of(frame.text)
            if question.code == "NOAUTH" and not self._is_in:
                self.conn.ready = None  # who has not said AUTH has to
            if question.code == "ERR" and is_set_up(question.frame):
                self.facts.questions.remove(question)  # older servers do not know all of it

    def _settle(self, question: Question, frame: Any, at: Position) -> None:
        place: Any = question.key
        if isinstance(frame, f.RedisError):
            self.facts.settled.append(Settled(self.conn, at, place, False, question.code))
        elif isinstance(frame, f.Reply) and isinstance(frame.value, int):
            details = {"receivers": frame.value}
            self.facts.settled.append(Settled(self.conn, at, place, True, details=details))

    def _refuse(self, question: Question, at: Position) -> None:
        kind = OPENING[type(question.frame)]
        for name in self._left.pop(id(question)):
            self.facts.refused.append(Refused(at, name, question.code))
            if window := self._windows.pop((kind, name), None):
                window.refused, window.closed = question.code, at

    def _greeted(self, question: Question, at: Position) -> None:
        if not question.accepted:
            goes_on = question.code not in DENIED and self._waits_for_more(at)
            if self.conn.ready is None and not goes_on:
                self.conn.turned_away = at, question.code
            self.conn.ready = self.conn.ready or (at if goes_on else None)
            return
        self.conn.ready = self.conn.ready or at
        if isinstance(question.frame, f.Hello) and question.frame.version:
            self._resp3 = question.frame.version == "3"

    def _waits_for_more(self, at: Position) -> bool:
        """Whether the client says anything after that: it can do without HELLO, in RESP2."""
        return any(seen.at > at for seen in self.conn.of("in"))


def track(conn: Conn, facts: Facts) -> None:
    """Note what a connection's frames mean."""
    Tracking(conn, facts).run()


def is_set_up(frame: Any) -> bool:
    """Whether libraries say this on each new connection, for whatever op needs it."""
    return isinstance(frame, f.Command) and frame.verb.upper() in SET_UP


def channels_of(frame: Any) -> Sequence[str]:
    """What a frame subscribes to."""
    return frame.channels if type(frame) in OPENING else ()
