"""What the frames of one connection mean, in order (docs/protocols/moleculer.md, 3 to 6)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from conformance.decoders.moleculer import topic_parts
from conformance.run.facts import Announced, Dropped, Facts, Flow, Listening, Oversized, Question, Sent
from conformance.run.showing import shown
from conformance.run.trace import Position
from conformance.run.view import Agreed, Conn, SeenFrame
from fakebrokers.core.frames import Frame, kind_of
from fakebrokers.moleculer.mqtt.frames import Subscribe as Topics
from fakebrokers.moleculer.nats.frames import Err, Hpub, NatsPing, NatsPong, Pub, ServerInfo, Sub, Unsub
from fakebrokers.moleculer.packets import (
    Disconnect,
    Discover,
    Event,
    Heartbeat,
    Info,
    Packet,
    Ping,
    Pong,
    Request,
    Response,
)
from fakebrokers.moleculer.redis.frames import Subscribe as Channels
from scenarios.moleculer.sweep.contents import (
    announced_by,
    broken_by,
    bytes_of,
    code_in,
    code_of,
    is_first,
    topic_in,
    words_in,
)
from scenarios.moleculer.sweep.legal import problem
from scenarios.moleculer.sweep.reading import packet_or
from scenarios.moleculer.sweep.serving import wrong_answer

VERSION = "5"
Key = tuple[str, Hashable]


#: A message may be handed over, and answered, before the CR LF after it has come (nats.js, nats.go).
EARLY_S = 0.05


class Tracking:
    """One pass over a connection; the frames on it become the packets that they carry.

    Args:
        facts: What was asked on earlier connections may be answered on this one.
    """

    def __init__(self, conn: Conn, facts: Facts) -> None:
        self.conn = conn
        self.facts = facts
        self._version = VERSION
        self._server = "NATS", conn.name  #: who asks on this connection alone
        self._node = ""  #: of the client
        self._prefix = ("", "")  #: of its topics, and what separates their parts
        self._ids: set[Hashable] = set()  #: of what the client has asked or sent
        self._plain: set[Hashable] = set()  #: what was answered, and not by a stream
        self._instance: Any = None  #: of the client, as it has announced it
        self._last_info: Info | None = None  #: to all
        self._pings = 0  #: of the client to the server, without an answer
        self._largest: tuple[Position, int] | None = None  #: bytes of a message that the server takes
        self._said = False  #: the client has said something to others
        self._listens = False
        self._subscribed: dict[str, Listening] = {}  #: by the number of the subscription
        self._known: set[Hashable] = set()  #: answered requests whose answers are streams
        self._ahead: dict[str, list[tuple[Request, Position]]] = {}  #: packets of streams without an opening
        self._early: dict[Hashable, tuple[tuple[Position, str], Any]] = {}  #: answers before their questions
        self._steps: dict[tuple[str, type], Callable[[Any, str, Position], object]] = {
            ("out", ServerInfo): self._info,
            ("out", NatsPong): self._granted,
            ("out", NatsPing): lambda frame, topic, at: self._asked_back(frame, self._server, at),
            ("out", Err): self._refused,
            ("in", NatsPing): self._wants,
            ("in", NatsPong): lambda frame, topic, at: self._answer_back(self._server, frame, at),
            ("in", Sub): self._listen,
            ("in", Unsub): self._listens_no_more,
            ("in", Channels): self._listens_to,
            ("in", Topics): self._listens_to,
            ("in", Request): self._request,
            ("out", Response): self._response,
            ("in", Ping): self._ping,
            ("out", Pong): self._pong,
            ("out", Request): self._to_serve,
            ("in", Response): self._served,
            ("out", Ping): self._pinged,
            ("in", Pong): lambda frame, topic, at: self._answer_back(("PING", frame.id or None), frame, at),
            ("out", Discover): self._discovered,
            ("in", Info): self._reports,
            ("out", Disconnect): self._left,
            ("in", Disconnect): self._leaves,
        }

    def run(self) -> None:
        """Note all frames of the connection."""
        carriers = self.conn.frames
        self.conn.frames = [seen._replace(frame=packet_or(seen.frame)) for seen in carriers]
        self._version = version_of(self.conn.frames)
        for seen, carrier in zip(self.conn.frames, carriers, strict=True):
            topic, frame = topic_in(carrier.frame), seen.frame
            if seen.direction == "out" and isinstance(frame, Packet) and not self._counts(frame, topic):
                self._meet_itself(frame, seen.at)
                continue
            if seen.direction == "in" and topic:
                self._speaks(carrier.frame, seen.at)
                self._sent(frame, topic, seen.at)
                self._fits(carrier.frame, topic, seen.at)
            step = self._steps.get((seen.direction, type(frame)))
            if step is not None:
                step(frame, topic, seen.at)

    def _counts(self, packet: Packet, topic: str) -> bool:
        """Whether a node has to take a packet in: it is of this version, of another node, and for it."""
        parts = topic_parts(topic)
        own = packet.sender == self._node and not isinstance(packet, Request | Response)
        if parts is None or parts.command.removesuffix("B") != packet.COMMAND:
            return False
        if self._node and (parts.prefix, parts.separator) != self._prefix:
            return False
        is_named = isinstance(packet.sender, str) and bool(packet.sender)
        return packet.ver == self._version and is_named and not own

    def _speaks(self, carrier: Frame, at: Position) -> None:
        """The client says something to others, whether it has asked if the server has taken in what it
        listens to, or not."""
        if self.conn.ready is None and not isinstance(carrier, Pub):
            self.conn.ready = at
            self.conn.signs = []
        if self.conn.ready is None and self._listens and self._pings <= 0:
            self.conn.ready = at
        self._said = True

    def _introduces(self, at: Position, **said: Any) -> None:
        """Every topic and every packet shows who the client is; what changes counts."""
        known = {name: value for _, name, value in self.conn.introduced}
        new = {name: value for name, value in said.items() if name not in known or known[name] != value}
        self.conn.introduced += [(at, name, value) for name, value in new.items()]

    def _sent(self, frame: Frame, topic: str, at: Position) -> None:
        """What the client says to other nodes."""
        parts = topic_parts(topic)
        if not isinstance(frame, Packet) or parts is None:
            self.facts.broken.append((at, f"what was published to {topic} is no packet"))
            return
        self._introduces(at, namespace=parts.prefix.partition("-")[2], node_id=frame.sender)
        self.facts.sent.append(
            Sent(self.conn, at, f"{parts.command}.{parts.rest}" if parts.rest else parts.command, frame)
        )
        wrong = problem(frame)
        if frame.ver != self._version or (self._node and frame.sender != self._node):
            wanted = f"expected {shown(self._version)} and {shown(self._node)}"
            wrong = f"{frame.COMMAND} has ver {shown(frame.ver)} and sender {shown(frame.sender)}, {wanted}"
        if isinstance(frame, Request | Event) and is_first(frame):
            key = repr(frame.id), topic if parts.command == "EVENTB" else ""
            wrong = f"{frame.COMMAND} with an id that was used before" if key in self._ids else wrong
            self._ids.add(key)
        if wrong:
            self.facts.broken.append((at, wrong))
        if isinstance(frame, Heartbeat) and self.conn.signs is not None:
            self.conn.signs.append(at.t)

    def _fits(self, carrier: Frame, topic: str, at: Position) -> None:
        """A server counts headers and payload of a message (docs/protocols/moleculer.md, 6.1)."""
        if self._largest is None or not isinstance(carrier, Pub | Hpub):
            return
        named, limit = self._largest
        size = len(carrier.payload) + (len(carrier.headers) if isinstance(carrier, Hpub) else 0)
        if size > limit:
            self.facts.oversized.append(Oversized(self.conn, named, at, f"a message to {topic}", size, limit))

    # the server

    def _info(self, frame: Any, topic: str, at: Position) -> None:
        limit = frame.options.get("max_payload")
        self._largest = (at, limit) if isinstance(limit, int) and limit > 0 else None
        self.conn.agreed = Agreed(at=at)
        self.conn.signs = self.conn.signs or []

    def _wants(self, frame: Any, topic: str, at: Position) -> None:
        self._pings += 1
        if self._listens and not self._said:  # ready when the server has taken this in too
            self.conn.ready = None if self._pings > 0 else at

    def _granted(self, frame: Any, topic: str, at: Position) -> None:
        self._pings -= 1
        if self.conn.ready is None and self._pings <= 0 and self._listens:
            self.conn.ready = at

    def _listen(self, frame: Any, topic: str, at: Position) -> None:
        self._listens = True
        self._is_own(frame.subject, at)
        self._subscribed[frame.sid] = self.facts.listening[-1]
        if self.conn.ready is None and self._said and self._pings <= 0:
            self.conn.ready = at  # it has spoken first: nothing else need follow for a while

    def _listens_no_more(self, frame: Unsub, topic: str, at: Position) -> None:
        if frame.limit is None and (listening := self._subscribed.pop(frame.sid, None)) is not None:
            listening.ended = at

    def _listens_to(self, frame: Any, topic: str, at: Position) -> None:
        """Of the other transporters; the server has taken them in when the client says something."""
        for name in frame.channels if isinstance(frame, Channels) else [row[0] for row in frame.filters]:
            self._is_own(name, at)

    def _is_own(self, subject: str, at: Position) -> None:
        """The topic of answers is the client's alone, and shows its name and its network."""
        self.facts.listening.append(Listening(self.conn, at, subject))
        parts = topic_parts(subject)
        if parts is not None and parts.command == "RES":
            self._node, self._prefix = parts.rest, (parts.prefix, parts.separator)

    def _refused(self, frame: Any, topic: str, at: Position) -> None:
        self.conn.server_closing = self.conn.server_closing or at

    def _leaves(self, frame: Any, topic: str, at: Position) -> None:
        self.conn.client_closing = self.conn.client_closing or at

    def _left(self, frame: Any, topic: str, at: Position) -> None:
        self.facts.dropped.append(Dropped(self.conn, at, frame.sender))

    def _meet_itself(self, packet: Packet, at: Position) -> None:
        """Another node has the client's id, and the client may leave (docs/protocols/moleculer.md, 4.10)."""
        if isinstance(packet, Info) and packet.sender == self._node and packet.instanceID != self._instance:
            self.conn.unwanted = self.conn.unwanted or at

    # what the client asks

    def _ask(self, frame: Frame, key: Hashable, at: Position) -> None:
        self.facts.questions.append(Question(self.conn, frame, key, at))

    def _answered(
        self, kind: type[Frame], key: Hashable, answer: Any, at: Position, accepted: bool, code: Any
    ) -> None:
        """The first answer to a question of any connection counts."""
        for question in reversed(self.facts.questions):
            if question.key == key and type(question.frame) is kind and question.answer is None:
                question.answer, question.answered = answer, at
                question.accepted, question.code = accepted, code
                return

    def _request(self, frame: Request, topic: str, at: Position) -> None:
        parts = topic_parts(topic)
        if is_first(frame):
            self._ask(frame, frame.id, at)
            self.facts.questions[-1].to = parts.rest if parts and parts.command == "REQ" else None
            self._check_parent(frame, at)
        if frame.stream is True or not is_first(frame):
            self._piece("in", self._question(self.facts.questions, frame.id), frame, frame.params, at)

    def _response(self, frame: Response, topic: str, at: Position) -> None:
        if frame.stream is True or not is_first(frame):
            self._piece("out", self._question(self.facts.questions, frame.id), frame, frame.data, at)
        if is_first(frame):
            if frame.stream is not True:
                self._plain.add(repr(frame.id))
            self._answered(Request, frame.id, frame, at, frame.success is True, code_of(frame))

    def _question(self, asked: list[Question], key: Hashable) -> Question | None:
        return next((one for one in reversed(asked) if one.key == key), None)

    def _piece(
        self, direction: str, question: Question | None, frame: Any, payload: Any, at: Position
    ) -> None:
        """A packet of a stream; those with an error say no, and end it."""
        if (
            question is None
            or not isinstance(frame.seq, int)
            or (direction == "out" and repr(frame.id) in self._plain)
        ):
            return
        known = [one for one in self.facts.flows if one.question is question and one.direction == direction]
        if not known:
            known = [Flow(direction, question, at)]
            self.facts.flows += known
        flow = known[0]
        is_good = frame.seq > 0 or getattr(frame, "success", True) is True
        flow.is_sure = flow.is_sure and self.conn.server_closing is None and is_good
        flow.is_opened = flow.is_opened or frame.seq == 0
        if direction == "in" and (frame.seq in flow.pieces or flow.last is not None):
            self.facts.broken.append((at, f"packet {frame.seq} of a stream again, or after its end"))
        if frame.seq > 0 and frame.stream is True:
            flow.is_doubled = flow.is_doubled or (frame.seq in flow.pieces and flow.whole is None)
            flow.pieces.setdefault(frame.seq, bytes_of(payload))
        elif frame.seq > 0 and frame.seq == flow.last and flow.whole is None:
            flow.has_two_ends = True
        elif frame.seq > 0 and flow.last is None and frame.seq not in flow.pieces:
            flow.last = frame.seq
            flow.error = broken_by(frame)
            if getattr(frame, "success", True) is False:
                flow.error = flow.error or {}
            flow.code, flow.words = code_in(flow.error), words_in(flow.error)
        flow.note(at)

    def _check_parent(self, frame: Request, at: Position) -> None:
        """What is asked on behalf of a request says so (docs/protocols/moleculer.md, 4.5)."""
        if not isinstance(frame.parentID, str):
            return
        parent: Any = self._question(self.facts.asked_back, ("REQ", frame.parentID))
        if parent is None:
            self.facts.broken.append(
                (at, f"parentID of a REQ is {shown(frame.parentID)}, and no such request came")
            )
            return
        asked = parent.frame
        level = asked.level + 1 if isinstance(asked.level, int) else frame.level
        wanted = level, asked.requestID or asked.id
        limits = [one.timeout for one in (asked, frame) if isinstance(one.timeout, int | float)]
        if len(limits) == 2 and limits[0] > 0 and not 0 < round(limits[1], 6) <= limits[0]:
            text = f"timeout of a REQ is {limits[1]} ms, that of the request that causes it {limits[0]} ms"
            self.facts.broken.append((at, text))
        if (frame.level, frame.requestID) != wanted or not isinstance(frame.caller, str):
            got = ", ".join(
                f"{name} {shown(getattr(frame, name))}" for name in ("level", "requestID", "caller")
            )
            text = f"expected level {level}, requestID {shown(wanted[1])} and a caller, got {got}"
            self.facts.broken.append((at, f"a REQ that another request causes: {text}"))

    def _ping(self, frame: Ping, topic: str, at: Position) -> None:
        self._ask(frame, frame.id, at)

    def _pong(self, frame: Pong, topic: str, at: Position) -> None:
        self._answered(Ping, frame.id, frame, at, True, None)

    # what the client is asked

    def _asked_back(self, frame: Frame, key: Hashable, at: Position) -> None:
        question = Question(self.conn, frame, key, at)
        if self.conn.ready is None:
            question.answered = at  # it may answer, but need not yet
        early = self._early.pop(key, None)
        if early is not None and at.t - early[0][0].t < EARLY_S:
            self.facts.misused.remove(early[0])
            question.answer, question.answered, question.accepted = early[1], early[0][0], True
        self.facts.asked_back.append(question)

    def _answer_back(
        self, key: tuple[Hashable, ...], answer: Any, at: Position, only: bool = True
    ) -> Question | None:
        """The client answers; what no node has asked for is noted, unless `only` is False."""
        open_ = [one for one in self.facts.asked_back if one.key == key and one.answer is None]
        here = [one for one in open_ if one.conn is self.conn]  # what was asked on a lost one may stay open
        for question in (here or open_)[:1]:
            question.answer, question.answered = answer, at
            question.accepted = True
            wrong = wrong_answer(question.frame, answer, at.t - question.asked.t)
            if wrong:
                self.facts.wrong.append((at, wrong))
            return question
        if only and self.conn.ready is not None:
            early = at, f"{kind_of(answer)} {shown(key[-1])} answers nothing that was asked"
            self.facts.misused.append(early)
            self._early[key] = early, answer
        return None

    def _to_serve(self, frame: Request, topic: str, at: Position) -> None:
        if not isinstance(frame.id, str):
            return
        if is_first(frame):
            self._asked_back(frame, ("REQ", frame.id), at)
        if is_first(frame) and (frame.seq == 0 or frame.stream is True):
            self.facts.asked_back[-1].answered = at  # it is answered when all of it has come
        self._uploaded(frame, at)

    def _uploaded(self, frame: Request, at: Position) -> None:
        """A packet of a stream for the client; those that come before the opening one wait for it."""
        packets = self._ahead.setdefault(frame.id, [])
        packets.append((frame, at))
        question = self._question(self.facts.asked_back, ("REQ", frame.id))
        if question is not None and question.frame.stream is True:  # type: ignore[attr-defined]
            for one, came in packets:
                self._piece("served", question, one, one.params, max(came, at))
            packets.clear()

    def _served(self, frame: Response, topic: str, at: Position) -> None:
        if is_first(frame):
            self._answer_back(("REQ", frame.id), frame, at)

    def _pinged(self, frame: Ping, topic: str, at: Position) -> None:
        self._asked_back(frame, ("PING", frame.id or None), at)

    def _discovered(self, frame: Discover, topic: str, at: Position) -> None:
        self._asked_back(frame, ("DISCOVER", frame.sender), at)

    def _reports(self, frame: Info, topic: str, at: Position) -> None:
        self._instance = frame.instanceID
        parts = topic_parts(topic)
        if parts is not None and not parts.rest:
            names = announced_by(frame)
            last, self._last_info = self._last_info, frame
            is_same = last is not None and last.instanceID == frame.instanceID
            if last is not None and is_same and announced_by(last) != names and frame.seq <= last.seq:
                self.facts.broken.append(
                    (at, f"an INFO with other services and the seq {frame.seq} of an earlier one")
                )
            self.facts.announced.append(Announced(self.conn, at, names))
        if parts is not None and parts.rest:
            self._answer_back(("DISCOVER", parts.rest), frame, at, only=False)


def version_of(frames: Iterable[SeenFrame]) -> str:
    """The version of the protocol in which a client speaks."""
    said = (seen.frame for seen in frames if seen.direction == "in")
    return next((str(frame.ver) for frame in said if isinstance(frame, Packet)), VERSION)
