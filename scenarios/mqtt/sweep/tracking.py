"""What the frames of a run mean, in order (docs/protocols/mqtt.md, 2, 3; numbers are the standard's).

A session may last longer than its connection, so the connections of a client are read one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from conformance.run.facts import (
    ArrivedFrame,
    Facts,
    Question,
    Record,
    Refused,
    Settled,
    Should,
    Window,
    Written,
)
from conformance.run.trace import Position
from conformance.run.traits import Pairing, Questions
from conformance.run.view import Agreed, Conn, SeenFrame
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.mqtt.frames import (
    Connack,
    Connect,
    Disconnect,
    Pingreq,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)

FROM_CLIENT = (Connect, Subscribe, Unsubscribe, Pingreq, Disconnect)
GRANTED = (0, 1, 2)
ENDLESS_S = float("inf")
PATIENCE = 2.5  #: keep alives without an answer to PINGREQ after which a server should be given up (3.1.2.10)


def place(topic: str, number: Hashable) -> tuple[str, str, Hashable]:
    """See `facts.Written.place`."""
    return topic, "", number


class Session:
    """What client and server keep of a client, as far as its frames show.

    Attributes:
        sent: Its messages that are not acknowledged, by packet id.
        received: Those of them with QoS 2 of which the server has said PUBREC.
        ever: What it has ever written, to know copies: packet id, topic, payload.
        may_release: Packet ids for which a PUBREC has ever come.
        owed: How often it may acknowledge, by the kind of packet and its id.
        kept: Messages with QoS 2 that are delivered when they are released.
        windows: By the filter.
        is_back: It has had a connection before, with which a message may have been lost unseen; so it may be
            with a client that gives no id, if one without an id has come before.
    """

    def __init__(self) -> None:
        self.sent: dict[int, Publish] = {}
        self.received: set[int] = set()
        self.ever: set[tuple[int, str, bytes]] = set()
        self.may_release: set[int] = set()
        self.owed: Counter[tuple[type[Frame], int]] = Counter()
        self.kept: dict[int, Publish] = {}
        self.windows: dict[str, Window] = {}
        self.is_back = False

    def forget(self) -> None:
        """The server remembers nothing."""
        self.sent.clear()
        self.received.clear()
        self.owed.clear()
        self.kept.clear()
        self.windows.clear()


class Tracking:
    """One pass over a connection.

    Args:
        sessions: Those of all clients so far, by client id.
    """

    def __init__(self, conn: Conn, facts: Facts, questions: Questions, sessions: dict[str, Session]) -> None:
        self.conn = conn
        self.facts = facts
        self.session = Session()
        self._sessions = sessions
        self._pairing = Pairing(questions, conn, facts)
        self._connect: Question | None = None
        self._pinged: tuple[Position, float] | None = None
        self._asked: dict[int, Subscribe | Unsubscribe] = {}
        self._steps: Mapping[tuple[str, type[Frame]], Callable[[Any, Position], None]] = {
            ("in", Connect): self._connected,
            ("out", Connack): self._let_in,
            ("in", Disconnect): self._disconnect,
            ("in", Subscribe): self._ask,
            ("in", Unsubscribe): self._ask,
            ("out", Suback): self._granted,
            ("out", Unsuback): self._left,
            ("in", Publish): self._publish,
            ("out", Puback): self._acknowledged,
            ("out", Pubrec): self._received,
            ("in", Pubrel): self._release,
            ("out", Pubcomp): self._acknowledged,
            ("out", Publish): self._deliver,
            ("in", Puback): self._answer,
            ("in", Pubrec): self._answer,
            ("out", Pubrel): self._released,
            ("in", Pubcomp): self._answer,
        }

    def run(self) -> None:
        """Note all frames of the connection."""
        for seen in self.conn.frames:
            garbage = self.conn.garbage
            if seen.direction == "in" or garbage is None or seen.at <= garbage:
                self._see(seen)
        for window in self.session.windows.values():
            if window.conn is self.conn:
                window.closed = window.closed or self.conn.ended

    def _see(self, seen: SeenFrame) -> None:
        frame, is_first = seen.frame, self.conn.ready is None and self.conn.turned_away is None
        if seen.direction == "out":
            self._handed(frame, seen.at, is_first=is_first)
        if not isinstance(frame, Connect | Connack):
            question = self._pairing.see(seen)
            if question is not None and isinstance(frame, Suback) and frame.codes:
                question.code = frame.codes[0]
            if question is not None and isinstance(frame, Pingreq):
                self._pinged = self._pinged or (seen.at, self.conn.agreed.heartbeat_s)
        step = self._steps.get((seen.direction, type(frame)))
        if step is not None and (
            isinstance(frame, Connect | Connack) or seen.direction == "in" or not is_first
        ):
            step(frame, seen.at)

    def _handed(self, frame: Frame, at: Position, *, is_first: bool) -> None:
        """Something has come from the server."""
        self.unanswered(at.t)
        self._pinged = None
        if is_first and isinstance(frame, Malformed):
            self.conn.spoiled = self.conn.spoiled or at
        if _is_forbidden(frame, is_first=is_first):
            self.conn.garbage = self.conn.garbage or at
        if isinstance(frame, Connack) and not is_first:
            self.conn.unwanted = self.conn.unwanted or at

    def unanswered(self, until_s: float) -> None:
        """A server that has not answered PINGREQ for long, and that is not given up."""
        if self._pinged is None or not self._pinged[1]:
            return
        at, keep_alive_s = self._pinged
        until_s = until_s if self.conn.ended is None else min(until_s, self.conn.ended.t)
        if any(at.t < moment < until_s for moment in self.conn.handed):
            return  # the rest of a packet that has begun, perhaps
        if self.conn.reading_stopped is None and until_s - at.t > PATIENCE * keep_alive_s + 1.0:
            text = f"{until_s - at.t:.1f} s on a connection without an answer to PINGREQ"
            self.facts.misused.append((at, Should(text)))

    # the connection

    def _connected(self, frame: Connect, at: Position) -> None:
        if self._connect is not None:
            self.facts.misused.append((at, "a second CONNECT"))
            return
        self._connect = Question(self.conn, frame, None, at)
        self.facts.questions.append(self._connect)
        if frame.client_id:
            self.conn.introduced.append((at, "client_id", frame.client_id))
        known = self._sessions.get(frame.client_id)
        self.session = known if known is not None and not frame.clean else Session()
        self.session.ever |= known.ever if known is not None else set()
        self.session.is_back = known is not None
        self._sessions[frame.client_id] = self.session

    def _let_in(self, frame: Connack, at: Position) -> None:
        asked = self._connect
        if asked is None or asked.answer is not None or self.conn.spoiled is not None:
            return
        asked.answer, asked.answered, asked.accepted, asked.code = frame, at, not frame.code, frame.code
        if frame.code:
            self.conn.turned_away = at, frame.code
            return
        self.conn.ready = at
        keep_alive = float(asked.frame.keep_alive)  # type: ignore[attr-defined]
        self.conn.agreed = Agreed(
            keep_alive, at=at, quiet_s=(0.9 * keep_alive, ENDLESS_S) if keep_alive else None
        )
        windows = list(self.session.windows.values())
        if not frame.session_present:
            self.session.forget()
            return
        for old in windows:
            if old.opened is not None and old.unsubscribed is None:
                window = Window(self.conn, old.target, old.number, old.start, at, dict(old.settings), at)
                self.session.windows[old.target] = window
                self.facts.windows.append(window)

    def _disconnect(self, frame: Disconnect, at: Position) -> None:
        self.conn.client_closing = self.conn.client_closing or at

    # subscriptions

    def _ask(self, frame: Subscribe | Unsubscribe, at: Position) -> None:
        self._take_id(frame.packet_id, frame, at)
        self._asked[frame.packet_id] = frame
        if isinstance(frame, Unsubscribe):
            for name in frame.filters:
                if (window := self.session.windows.get(name)) is not None:
                    window.unsubscribed = at
                    window.closed = window.closed or at
            return
        for name, qos in frame.filters:
            former = self.session.windows.get(name)
            if former is not None and former.conn is self.conn and former.closed is None:
                former.closed = at  # the new one takes its place (3.8.4)
            window = Window(self.conn, name, name, None, at, {"qos": qos})
            self.session.windows[name] = window
            self.facts.windows.append(window)

    def _granted(self, frame: Suback, at: Position) -> None:
        asked = self._asked.get(frame.packet_id)
        if not isinstance(asked, Subscribe):
            return
        del self._asked[frame.packet_id]
        for (name, _), code in zip(asked.filters, frame.codes, strict=False):
            window = self.session.windows.get(name)
            if code in GRANTED and window is not None:
                window.opened = window.opened or at
            elif code not in GRANTED:  # 3.9.3
                self.facts.refused.append(Refused(at, name, code))
                if window is not None:
                    window.refused, window.closed = code, at

    def _left(self, frame: Unsuback, at: Position) -> None:
        asked = self._asked.get(frame.packet_id)
        if not isinstance(asked, Unsubscribe):
            return
        del self._asked[frame.packet_id]
        for name in asked.filters:
            window = self.session.windows.get(name)
            if window is not None and window.unsubscribed is not None:  # and not subscribed to again
                del self.session.windows[name]

    # the client's messages

    def _take_id(self, number: int, frame: Frame, at: Position) -> None:
        """A packet id belongs to one thing until its exchange is over (2.3.1)."""
        former: Frame | None = self.session.sent.get(number) or self._asked.get(number)
        if former is not None and not _is_copy(former, frame):
            text = f"packet id {number} for a {type(frame).__name__}, it is that of a {type(former).__name__}"
            self.facts.misused.append((at, f"{text} that is under way"))

    def _publish(self, frame: Publish, at: Position) -> None:
        shown = {"qos": frame.qos, "retain": frame.retain}
        where = place(frame.topic, frame.packet_id)
        self.facts.written.append(Written(self.conn, at, where, frame.payload, frame.qos == 2, shown))
        if not frame.qos:
            if frame.dup:
                self.facts.broken.append((at, "a message with QoS 0 and DUP (3.3.1.1)"))
            return
        self._take_id(frame.packet_id, frame, at)
        copy = frame.packet_id, frame.topic, frame.payload
        if frame.dup and not self.session.is_back and copy not in self.session.ever:
            self.facts.broken.append((at, f"message {frame.packet_id} has DUP, and was never sent (3.3.1.1)"))
        if frame.packet_id in self.session.received:
            text = f"message {frame.packet_id} again, after its PUBREC (4.3.3)"
            self.facts.broken.append((at, text))
        elif frame.packet_id in self.session.sent and not frame.dup:
            self.facts.broken.append((at, f"message {frame.packet_id} again, without DUP (3.3.1.1)"))
        self.session.ever.add(copy)
        self.session.sent[frame.packet_id] = frame

    def _received(self, frame: Pubrec, at: Position) -> None:
        self.session.may_release.add(frame.packet_id)
        message = self.session.sent.get(frame.packet_id)
        if message is not None and message.qos == 2:
            self.session.received.add(frame.packet_id)

    def _release(self, frame: Pubrel, at: Position) -> None:
        if frame.packet_id not in self.session.may_release:
            self.facts.misused.append((at, f"PUBREL {frame.packet_id}, and no PUBREC has come (4.3.3)"))

    def _acknowledged(self, frame: Puback | Pubcomp, at: Position) -> None:
        message = self.session.sent.get(frame.packet_id)
        if message is None:
            return
        is_last = message.qos == 1
        if isinstance(frame, Pubcomp):
            is_last = frame.packet_id in self.session.received
        if is_last:
            self.facts.settled.append(Settled(self.conn, at, place(message.topic, frame.packet_id), True))
            del self.session.sent[frame.packet_id]
            self.session.received.discard(frame.packet_id)

    # messages for the client

    def _deliver(self, frame: Publish, at: Position) -> None:
        if frame.qos:
            self.session.owed[Puback if frame.qos == 1 else Pubrec, frame.packet_id] += 1
        if frame.qos == 2:
            self.session.kept.setdefault(frame.packet_id, frame)
        else:
            self._arrive(frame, at)

    def _released(self, frame: Pubrel, at: Position) -> None:
        message = self.session.kept.pop(frame.packet_id, None)
        self.session.owed[Pubcomp, frame.packet_id] += 1
        if message is not None:
            self._arrive(message, at)

    def _arrive(self, frame: Publish, at: Position) -> None:
        record = Record(None, frame.payload, properties={"topic": frame.topic, "retain": frame.retain})
        for window in self.session.windows.values():
            if window.conn is self.conn and fits(window.target, frame.topic):
                window.arrivals.append(ArrivedFrame(at, (record,)))

    def _answer(self, frame: Puback | Pubrec | Pubcomp, at: Position) -> None:
        """An acknowledgement is one of a message that has come, and fits its QoS."""
        self.session.owed[type(frame), frame.packet_id] -= 1
        if self.session.owed[type(frame), frame.packet_id] < 0:
            name = type(frame).__name__.upper()
            self.facts.misused.append((at, f"{name} {frame.packet_id}, for which nothing waits (4.3)"))


def _is_forbidden(frame: Frame, *, is_first: bool) -> bool:
    """Whether a client has to end the connection because of what came (4.8)."""
    if is_first and not isinstance(frame, Connack | Malformed):
        return True  # 3.2
    if isinstance(frame, Publish):
        return not frame.topic or "+" in frame.topic or "#" in frame.topic  # 3.3.2.1
    return isinstance(frame, FROM_CLIENT)


def _is_copy(one: Frame, other: Frame) -> bool:
    """Whether both are the same message, whatever their DUP."""
    if not isinstance(one, Publish) or not isinstance(other, Publish):
        return False
    return (one.topic, one.payload, one.qos) == (other.topic, other.payload, other.qos)


def fits(name: str, topic: str) -> bool:
    """Whether a message to a topic is for a filter (4.7)."""
    wanted, levels = name.split("/"), topic.split("/")
    if topic.startswith("$") and wanted[0] in ("+", "#"):
        return False
    for number, level in enumerate(wanted):
        if level == "#":
            return True
        if number >= len(levels) or level not in ("+", levels[number]):
            return False
    return len(wanted) == len(levels)
