"""What the frames of one connection mean, in order (docs/protocols/moleculer.md, 3 to 6)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from msgspec import UNSET

from conformance.sweep.acts.inside import opened
from conformance.sweep.facts import Dropped, Facts, Question
from conformance.sweep.tape import Moment
from conformance.sweep.view import Agreed, Conn, Seen
from fakebrokers.core.frames import Frame, kind_of
from fakebrokers.moleculer.nats.frames import Err, Msg, NatsPing, NatsPong, Pub, ServerInfo, Sub
from fakebrokers.moleculer.packets import Disconnect, Discover, Info, Packet, Ping, Pong, Request, Response
from fakebrokers.moleculer.topics import topic_of
from scenarios.moleculer.sweep.serving import wrong_answer

VERSION = "5"
Key = tuple[str, Hashable]


class Tracking:
    """One pass over a connection; the frames on it become the packets that they carry.

    Args:
        facts: What was asked on earlier connections may be answered on this one.
    """

    def __init__(self, conn: Conn, facts: Facts) -> None:
        self.conn = conn
        self.facts = facts
        self._version = VERSION
        self._node = ""  #: of the client
        self._instance: Any = None  #: the same, as it has told others
        self._pings = 0  #: of the client to the server, without an answer
        self._said = False  #: the client has said something to others
        self._listens = False
        self._known: set[Hashable] = set()  #: answered requests whose answers are streams
        self._steps: dict[tuple[str, type], Callable[[Any, str, Moment], object]] = {
            ("out", ServerInfo): self._info,
            ("out", NatsPong): self._granted,
            ("out", NatsPing): lambda frame, topic, at: self._asked_back(frame, "NATS", at),
            ("out", Err): self._refused,
            ("in", NatsPing): self._wants,
            ("in", NatsPong): lambda frame, topic, at: self._answer_back("NATS", frame, at),
            ("in", Sub): self._listen,
            ("in", Request): self._request,
            ("out", Response): self._response,
            ("in", Ping): self._ping,
            ("out", Pong): self._pong,
            ("out", Request): self._to_serve,
            ("in", Response): self._served,
            ("out", Ping): self._pinged,
            ("in", Pong): lambda frame, topic, at: self._answer_back(("PING", frame.id), frame, at),
            ("out", Discover): self._discovered,
            ("in", Info): self._tells,
            ("out", Disconnect): self._left,
            ("in", Disconnect): self._leaves,
        }

    def run(self) -> None:
        """Note everything."""
        plain = self.conn.frames
        self.conn.frames = [seen._replace(frame=opened(seen.frame)) for seen in plain]
        self._version = version_of(self.conn.frames)
        for seen, carrier in zip(self.conn.frames, plain, strict=True):
            topic = carrier.frame.subject if isinstance(carrier.frame, Pub | Msg) else ""
            frame = seen.frame
            if seen.direction == "out" and isinstance(frame, Packet) and not self._counts(frame, topic):
                self._meet_itself(frame, seen.at)
                continue
            if seen.direction == "in" and topic:
                if self.conn.ready is None and self._listens and self._pings <= 0:
                    self.conn.ready = seen.at  # it does not ask whether the server has taken this in
                self._said = True
            step = self._steps.get((seen.direction, type(frame)))
            if step is not None:
                step(frame, topic, seen.at)

    def _counts(self, packet: Packet, topic: str) -> bool:
        """Whether a node has to take a packet in: it is of this version, of somebody else, and for it."""
        parts = topic_of(topic)
        own = packet.sender == self._node and not isinstance(packet, Request | Response)
        if parts is None or parts.command.removesuffix("B") != packet.COMMAND:
            return False
        return (
            packet.ver == self._version and isinstance(packet.sender, str) and packet.sender != "" and not own
        )

    # the server

    def _info(self, frame: Any, topic: str, at: Moment) -> None:
        self.conn.agreed = Agreed(at=at)

    def _wants(self, frame: Any, topic: str, at: Moment) -> None:
        self._pings += 1
        if self._listens and not self._said:  # ready when the server has taken this in too
            self.conn.ready = None if self._pings > 0 else at

    def _granted(self, frame: Any, topic: str, at: Moment) -> None:
        self._pings -= 1
        if self.conn.ready is None and self._pings <= 0 and self._listens:
            self.conn.ready = at

    def _listen(self, frame: Any, topic: str, at: Moment) -> None:
        self._listens = True
        parts = topic_of(frame.subject)
        if parts is not None and parts.command == "RES":
            self._node = parts.rest

    def _refused(self, frame: Any, topic: str, at: Moment) -> None:
        self.conn.goodbye = self.conn.goodbye or at

    def _leaves(self, frame: Any, topic: str, at: Moment) -> None:
        self.conn.parting = self.conn.parting or at

    def _left(self, frame: Any, topic: str, at: Moment) -> None:
        self.facts.dropped.append(Dropped(self.conn, at, frame.sender))

    def _meet_itself(self, packet: Packet, at: Moment) -> None:
        """Another node has the client's id, and the client may leave (docs/protocols/moleculer.md, 4.10)."""
        if isinstance(packet, Info) and packet.sender == self._node and packet.instanceID != self._instance:
            self.conn.unwanted = self.conn.unwanted or at

    # what the client asks

    def _ask(self, frame: Frame, key: Hashable, at: Moment) -> None:
        self.facts.questions.append(Question(self.conn, frame, key, at))

    def _answered(
        self, kind: type[Frame], key: Hashable, answer: Any, at: Moment, accepted: bool, code: Any
    ) -> None:
        """The first answer to a question of any connection counts."""
        for question in reversed(self.facts.questions):
            if question.key == key and type(question.frame) is kind and question.answer is None:
                question.answer, question.answered = answer, at
                question.accepted, question.code = accepted, code
                return

    def _request(self, frame: Request, topic: str, at: Moment) -> None:
        if frame.seq in (UNSET, 0):
            self._ask(frame, frame.id, at)

    def _response(self, frame: Response, topic: str, at: Moment) -> None:
        if frame.seq in (UNSET, None, 0):
            self._answered(Request, frame.id, frame, at, frame.success is True, code_of(frame))

    def _ping(self, frame: Ping, topic: str, at: Moment) -> None:
        if topic.count(".") > 1:
            self._ask(frame, frame.id, at)

    def _pong(self, frame: Pong, topic: str, at: Moment) -> None:
        self._answered(Ping, frame.id, frame, at, True, None)

    # what the client is asked

    def _asked_back(self, frame: Frame, key: Hashable, at: Moment) -> None:
        question = Question(self.conn, frame, key, at)
        if self.conn.ready is None:
            question.answered = at  # it may answer, but need not yet
        self.facts.asked_back.append(question)

    def _answer_back(self, key: Hashable, answer: Any, at: Moment, only: bool = True) -> Question | None:
        """The client answers; what nobody has asked is noted, unless `only` is False."""
        for question in self.facts.asked_back:
            if question.key == key and question.answer is None:
                question.answer, question.answered = answer, at
                question.accepted = True
                wrong = wrong_answer(question.frame, answer)
                if wrong:
                    self.facts.wrong.append((at, wrong))
                return question
        if only and self.conn.ready is not None:
            self.facts.misused.append((at, f"{kind_of(answer)} {key} answers nothing that was asked"))
        return None

    def _to_serve(self, frame: Request, topic: str, at: Moment) -> None:
        if not isinstance(frame.id, str) or frame.seq not in (UNSET, None, 0):
            return
        self._asked_back(frame, ("REQ", frame.id), at)
        if frame.seq == 0 or frame.stream is True:
            self.facts.asked_back[-1].answered = at  # it is answered when all of it has come

    def _served(self, frame: Response, topic: str, at: Moment) -> None:
        if frame.seq in (UNSET, 0):
            self._answer_back(("REQ", frame.id), frame, at)

    def _pinged(self, frame: Ping, topic: str, at: Moment) -> None:
        self._asked_back(frame, ("PING", frame.id), at)

    def _discovered(self, frame: Discover, topic: str, at: Moment) -> None:
        self._asked_back(frame, ("DISCOVER", frame.sender), at)

    def _tells(self, frame: Info, topic: str, at: Moment) -> None:
        self._instance = frame.instanceID
        parts = topic_of(topic)
        if parts is not None and parts.rest:
            self._answer_back(("DISCOVER", parts.rest), frame, at, only=False)


def version_of(frames: Iterable[Seen]) -> str:
    """The version of the protocol in which a client speaks."""
    said = (seen.frame for seen in frames if seen.direction == "in")
    return next((str(frame.ver) for frame in said if isinstance(frame, Packet)), VERSION)


def code_of(answer: Response) -> Any:
    """The code of a refusal; None where it tells none."""
    error = answer.error
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, int | str) else None
