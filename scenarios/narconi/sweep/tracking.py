"""What the frames of one connection mean, in order (docs/protocols/narconi.md, "publish" and "consume")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from conformance.rules.confirming import up_to
from conformance.run.facts import (
    ArrivedFrame,
    Complaint,
    Confirmed,
    Facts,
    IdUse,
    Question,
    Record,
    Refused,
    Settled,
    Window,
    Written,
)
from conformance.run.showing import shown
from conformance.run.trace import Position
from conformance.run.traits import OneOf, Pairing, Questions
from conformance.run.view import Conn
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.routes import find_route
from scenarios.narconi.sweep.legal import problem
from scenarios.narconi.sweep.reading import is_accepted, metadata

DONE = (None, 1000, 1001)  #: codes of a Close that says no more than that; others report an error
PUBLISHING = "publishing connection"
EVERYTHING = "0"  #: an id that stands for all deliveries


class Tracking:
    """One pass over a connection."""

    def __init__(self, questions: Questions, conn: Conn, facts: Facts) -> None:
        self.conn = conn
        self.facts = facts
        self._pairing = Pairing(questions, conn, facts)
        self._queue = ""
        self._window: Window | None = None
        self._producer: IdUse | None = None  #: the connection as one that publishes
        self._delivered: list[str] = []  #: ids that wait for their acknowledgement
        self._closing: Question | None = None
        self._parted = False  #: the client has said that it closes, with whatever code
        self._steps: dict[type, Callable[[Any, Position], None]] = {
            f.WsUpgrade: self._upgrade,
            f.WsPublish: self._publish,
            f.WsConfirm: self._confirm,
            f.WsReject: self._refuse,
            f.WsError: self._complain,
            f.WsDeliver: self._deliver,
            f.WsAck: self._ack,
        }

    def run(self) -> None:
        """Note all frames of the connection."""
        for seen in self.conn.frames:
            frame = seen.frame
            if isinstance(frame, f.HttpRequest):
                self._request(frame, seen.at)
            question = self._pairing.see(seen)
            if question is not None and isinstance(frame, f.WsUpgrade):
                question.to = frame.queue
            if question is not None and question.answer is frame and seen.direction == "out":
                self._answered(question, seen.at)
            elif question is not None and question.answer is frame:
                self._ponged(question, seen.at)
            elif isinstance(frame, f.WsClose):
                self._close(frame, seen.at, seen.direction)
            elif type(frame) in self._steps:
                self._steps[type(frame)](frame, seen.at)
        if not self.conn.is_session and self.conn.ended_by == "client":
            self.conn.client_closing = self.conn.ended  # so HTTP clients say that they are done
        self._part()
        if self._window is not None:
            self._window.closed = self._window.closed or self.conn.ended

    def _request(self, frame: f.HttpRequest, at: Position) -> None:
        """Of HTTP; an upgrade begins as one, too."""
        if frame.project:
            self.conn.introduced.append((at, "project", frame.project))
        if wrong := problem(frame, self._keys()):
            self.facts.broken.append((at, wrong))
        if not isinstance(frame, f.WsUpgrade):
            self.conn.ready = self.conn.ready or self.conn.accepted
            self.conn.is_session = False

    def _keys(self) -> set[str]:
        """The keys of the upgrades on other connections."""
        asked = [one.frame for one in self.facts.questions if isinstance(one.frame, f.WsUpgrade)]
        return {one.header("sec-websocket-key") or "" for one in asked}

    def _part(self) -> None:
        """A Close frame is answered before the connection is ended (RFC 6455, 5.5.1)."""
        closing, ended = self._closing, self.conn.ended
        if closing is None or closing.answer is not None or ended is None or self.conn.ended_by != "client":
            return
        if self.conn.garbage is None:
            text = f"the end of {self.conn.name}, and the server's Close had no answer"
            self.facts.misused.append((ended, text))

    def _ponged(self, question: Question, at: Position) -> None:
        ping, pong = question.frame, question.answer
        if isinstance(ping, f.WsPing) and pong != f.WsPong(ping.payload):
            self.facts.misused.append((at, "a pong with other bytes than its ping"))

    def _answered(self, question: Question, at: Position) -> None:
        asked, answer = question.frame, question.answer
        if isinstance(asked, f.WsUpgrade) and isinstance(answer, f.HttpResponse):
            question.accepted = is_accepted(asked, answer)
            if question.accepted:
                self.conn.ready = at
                if self._window is not None:
                    self._window.opened = at
                return
            self.conn.turned_away = at, answer.status
            self.facts.refused.append(Refused(at, self._queue, answer.status))
            if self._window is not None:
                self._window.refused, self._window.closed = answer.status, at
        elif isinstance(answer, f.HttpResponse) and _closes(answer):
            self.conn.server_closing = self.conn.server_closing or at

    # the WebSocket

    def _upgrade(self, frame: f.WsUpgrade, at: Position) -> None:
        route = find_route(frame.target)
        self._queue = route.queue if route is not None else ""
        query = route.query if route is not None else {}
        if frame.header("sec-websocket-protocol") == "consume":
            asked = {"ack": "ack" in query, "limit": query.get("limit"), "encoding": query.get("encoding")}
            self._window = Window(self.conn, self._queue, 0, {"type": "next"}, at, asked)
            self.facts.windows.append(self._window)
        elif frame.header("sec-websocket-protocol") == "publish":
            self._producer = IdUse(self.conn, PUBLISHING, self.conn.name, at, self._queue, self.conn.ended)
            self.facts.ids.append(self._producer)

    def _close(self, frame: f.WsClose, at: Position, direction: str) -> None:
        if direction == "out":
            if self.conn.server_closing is None and not self._parted:
                self._closing = Question(self.conn, frame, None, at)
                self.facts.asked_back.append(self._closing)
            self.conn.server_closing = self.conn.server_closing or at
        else:
            self._parted = True
            if self._closing is not None:
                self._closing.answer, self._closing.answered = frame, at
            if self.conn.server_closing is None and frame.code in DONE:
                self.conn.client_closing = self.conn.client_closing or at
        if self._window is not None:
            self._window.closed = self._window.closed or at

    # publishing

    def _place(self, number: int) -> tuple[str, str, str]:
        return self._queue, "", f"{self.conn.name}#{number}"

    def _publish(self, frame: f.WsPublish, at: Position) -> None:
        if not self.conn.client_closing:
            shown = dict(frame.metadata)
            self.facts.written.append(
                Written(self.conn, at, self._place(frame.number), frame.payload, properties=shown)
            )

    def _confirm(self, frame: f.WsConfirm, at: Position) -> None:
        if self.conn.server_closing is None:
            self.facts.settled.append(Settled(self.conn, at, self._place(frame.number), True))

    def _spend(self, at: Position) -> None:
        """After an error the server takes nothing more, and ends the connection (document, Publishing over
        WebSocket)."""
        if self._producer is not None and (self._producer.freed is None or at < self._producer.freed):
            self._producer.freed = at

    def _refuse(self, frame: f.WsReject, at: Position) -> None:
        self._spend(at)
        if self.conn.server_closing is None:
            place = self._place(frame.number)
            self.facts.settled.append(Settled(self.conn, at, place, False, frame.code))

    def _complain(self, frame: f.WsError, at: Position) -> None:
        """The server ends a subscription because of an error of its own."""
        self._spend(at)
        self.facts.refused.append(Refused(at, self._queue, frame.code))
        self.facts.complaints.append(Complaint(self.conn, at, frame.code))
        if self._window is not None:
            self._window.refused = frame.code

    # consuming

    def _deliver(self, frame: f.WsDeliver, at: Position) -> None:
        if self._window is None or self.conn.server_closing is not None:
            return
        if frame.ack_id is not None:
            self._delivered.append(frame.ack_id)
        headers = metadata({name.lower(): _read(value) for name, value in frame.headers.items()})
        if frame.content_type is not None:
            headers["Content-Type"] = frame.content_type
        shown = {"headers": headers, "redelivered": frame.redelivered, "ts": frame.timestamp}
        record = Record(frame.ack_id, frame.payload, properties=shown)
        self._window.arrivals.append(ArrivedFrame(at, (record,)))

    def _ack(self, frame: f.WsAck, at: Position) -> None:
        name = frame.key
        if frame.ack_to_id == EVERYTHING:
            self._delivered.clear()
        elif name not in self._delivered:
            self.facts.misused.append(
                (at, f"an acknowledgement of {shown(name)}, which does not wait for one")
            )
            return
        elif frame.ack_to_id is not None:
            del self._delivered[: self._delivered.index(name) + 1]
        else:
            self._delivered.remove(name)
        key = name if frame.ack_to_id is None else up_to(name)
        self.facts.confirmed.append(Confirmed(self.conn, at, self._queue, key))


def _read(value: Any) -> Any:
    """What a client may make of a value of metadata: what is no text it may leave out (NARC-3.16)."""
    return value if isinstance(value, str) else OneOf((value, UNSET))


def _closes(answer: f.HttpResponse) -> bool:
    named = {name.lower(): value for name, value in reversed(answer.headers)}
    return named.get("connection", "").lower() == "close"
