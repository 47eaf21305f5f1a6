"""What the frames of one connection mean, in order (docs/protocols/nats.md, 2 and 3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

from conformance.run.facts import (
    ArrivedFrame,
    Complaint,
    Facts,
    IdUse,
    Oversized,
    Question,
    Record,
    Settled,
    Window,
    Written,
)
from conformance.run.trace import Position
from conformance.run.traits import Pairing, Questions
from conformance.run.view import Agreed, Conn
from fakebrokers.core.frames import Malformed
from fakebrokers.nats import frames as f

NO_RESPONDERS = 503  #: the one status by which nats-server refuses a request
INBOX = "_INBOX."  #: what the subjects begin with at which clients listen to answers


def status(frame: f.Hmsg) -> int:
    """The status in the first line of the headers; 0 for none."""
    words = frame.headers.partition(b"\r\n")[0].split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() and not frame.payload else 0


class Tracking:
    """One pass over a connection."""

    def __init__(self, questions: Questions, conn: Conn, facts: Facts) -> None:
        self.conn = conn
        self.facts = facts
        self._pairing = Pairing(questions, conn, facts)
        self._asked: dict[str, Question] = {}  #: by the subject of the answer
        self._pings: deque[int] = deque()  #: how many messages were written before each that has no PONG
        self._written: list[tuple[Hashable, ...]] = []
        self._settled = 0
        self._inboxes: set[str] = set()  #: the numbers of the subscriptions to them
        self._windows: dict[str, Window] = {}
        self._ids: dict[str, IdUse] = {}
        self._limits: dict[str, int] = {}
        self._largest: tuple[Position, int] | None = None
        self._greeted = False
        self._steps: dict[tuple[str, type], Callable[[Any, Position], object]] = {
            ("out", f.Info): self._info,
            ("in", f.Connect): self._greet,
            ("in", f.Ping): lambda frame, at: self._pings.append(len(self._written)),
            ("out", f.Pong): self._ponged,
            ("in", f.Pub): self._publish,
            ("in", f.Hpub): self._publish,
            ("in", f.Sub): self._subscribe,
            ("in", f.Unsub): self._unsubscribe,
            ("out", f.Msg): self._deliver,
            ("out", f.Hmsg): self._deliver,
            ("out", f.Err): self._complain,
            ("out", Malformed): self._unread,
        }

    def run(self) -> None:
        """Note all frames of the connection."""
        for seen in self.conn.frames:
            if (seen.direction, type(seen.frame)) in (("out", f.Ping), ("in", f.Pong)):
                self._pairing.see(seen)
            elif (step := self._steps.get((seen.direction, type(seen.frame)))) is not None:
                step(seen.frame, seen.at)
        self.conn.owes = bool(self._pings)
        for window in self._windows.values():
            window.closed = window.closed or self.conn.ended
        for one in self._ids.values():
            one.freed = one.freed or self.conn.ended

    def _info(self, frame: f.Info, at: Position) -> None:
        self.conn.agreed = Agreed(at=at)
        limit = frame.options.get("max_payload")
        self._largest = (at, limit) if isinstance(limit, int) and limit > 0 else None

    def _greet(self, frame: f.Connect, at: Position) -> None:
        self._greeted = True
        if "user" in frame.credentials:
            self.conn.introduced.append((at, "user", frame.credentials["user"]))

    def _ponged(self, frame: f.Pong, at: Position) -> None:
        if not self._pings:
            return
        if self._greeted:
            self.conn.ready = self.conn.ready or at
        count = self._pings.popleft()
        self.facts.settled += [
            Settled(self.conn, at, place, True) for place in self._written[self._settled : count]
        ]
        self._settled = max(self._settled, count)

    def _publish(self, frame: f.Pub | f.Hpub, at: Position) -> None:
        size = len(frame.payload) + (len(frame.headers) if isinstance(frame, f.Hpub) else 0)
        if self._largest is not None and size > self._largest[1]:
            named, limit = self._largest
            what = f"a message to {frame.subject}"
            self.facts.oversized.append(Oversized(self.conn, named, at, what, size, limit))
        if frame.reply:
            question = Question(self.conn, frame, frame.reply, at)
            self._asked[frame.reply] = question
            self.facts.questions.append(question)
            return
        place = (frame.subject, "", f"{self.conn.name}#{len(self._written)}")
        self._written.append(place)
        self.facts.written.append(Written(self.conn, at, place, frame.payload))

    def _subscribe(self, frame: f.Sub, at: Position) -> None:
        if frame.subject.startswith(INBOX):
            self._inboxes.add(frame.sid)
            return
        if self._is_repeat(frame):
            return
        self._ids[frame.sid] = IdUse(self.conn, "subscription", frame.sid, at, frame.subject)
        self.facts.ids.append(self._ids[frame.sid])
        self._windows[frame.sid] = Window(
            self.conn, frame.subject, frame.sid, None, at, {"queue": frame.queue}, opened=at
        )
        self.facts.windows.append(self._windows[frame.sid])

    def _is_repeat(self, frame: f.Sub) -> bool:
        """Whether a subscription of that number and subject is there: nats-server then does nothing."""
        there = self._ids.get(frame.sid)
        return there is not None and there.freed is None and there.what == frame.subject

    def _unsubscribe(self, frame: f.Unsub, at: Position) -> None:
        window = self._windows.get(frame.sid)
        if window is None:
            return
        if frame.limit:
            self._limits[frame.sid] = frame.limit
        else:
            window.unsubscribed = at
        self._end(frame.sid, at)

    def _end(self, sid: str, at: Position) -> None:
        """The subscription has ended, unless more messages are due."""
        window = self._windows[sid]
        if window.unsubscribed or 0 < self._limits.get(sid, 0) <= len(window.arrivals):
            window.closed = window.closed or at
            self._ids[sid].freed = self._ids[sid].freed or at

    def _deliver(self, frame: f.Msg | f.Hmsg, at: Position) -> None:
        question = self._asked.get(frame.subject)
        window = self._windows.get(frame.sid)
        if question is not None and question.answer is None and frame.sid in self._inboxes:
            question.answer, question.answered = frame, at
            question.code = status(frame) if isinstance(frame, f.Hmsg) else 0
            question.accepted = question.code != NO_RESPONDERS
        elif window is not None:
            window.arrivals.append(ArrivedFrame(at, (Record(None, frame.payload),)))
            if frame.sid in self._limits:
                self._end(frame.sid, at)

    def _complain(self, frame: f.Err, at: Position) -> None:
        """The server mostly ends the connection after it, and a client may do so at once."""
        self.conn.unwanted = self.conn.unwanted or at
        if self.conn.ready is None:
            self.conn.turned_away = self.conn.turned_away or (at, frame.text)
        else:
            self.facts.complaints.append(Complaint(self.conn, at, frame.text))

    def _unread(self, frame: Malformed, at: Position) -> None:
        """A client may skip the line, or give the connection up."""
        self.conn.unwanted = self.conn.unwanted or at
        if self.conn.ended_by == "client":
            self.conn.garbage = self.conn.garbage or at
