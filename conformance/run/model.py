"""What a protocol has to tell the sweep: which frame answers which, what ops ask, what limits there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import msgspec

from conformance.run.facts import Facts, Question, Record
from conformance.run.trace import Position
from conformance.run.view import Conn, SeenFrame
from fakebrokers.core.frames import Frame, Malformed, Role
from fakebrokers.core.session import Codec
from fakebrokers.protocol import find_protocol

Args = Mapping[str, Any]


class Whole(dict[str, Any]):
    """A mapping of which an op returns all entries, not only those that it knows, and no others."""


class AnyOrder(list[Any]):
    """Items of which an op returns all, in whatever order."""


class OneOf(tuple[Any, ...]):
    """What an op may return, as it can be read in several ways."""


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
    """

    kind: type[Frame] | tuple[type[Frame], ...]
    fits: Callable[[Args, Any], bool]
    value: Callable[[Any], Mapping[str, Any]] | None = None
    apt: Callable[[Args, Any], bool] | None = None
    parts: Callable[[Args], Sequence[tuple[type[Frame], ...]]] | None = None
    also: Callable[[Args, Any], Mapping[str, Any]] | None = None
    none: Callable[[Mapping[str, Any]], bool] | None = None


class Model(ABC):
    """Subclass it in ``scenarios/<protocol>/sweep/model.py`` and call an instance ``MODEL``.

    Attributes:
        protocol: Its name.
        answers: Which frame of the server answers which of the client.
        questions: The other way round: what the server asks, and how the client answers.
        ops: The ops that ask a question each.
        probe: Op and arguments of a question that any working session gets an answer to.
        specimens: Frames of kinds that `acts.specimen` cannot make from the types of their fields.
        not_made_up: Frames of the server that no act makes up, because a broker that says them without
            doing them lies about what it has (let `happenings` do it instead).
        happenings: What can happen to the broker, by name; called with the fake.
        unasked: Further frames of the server that nobody asks for, by name: for ids that nobody has.
        noise: Units that are no frames, by name.
        is_log: Whether targets are logs with positions in order.
        crediting: The ops by which the application itself allows deliveries.
        dropping: The ops that end a producer.
        closing: The ops that close a target, so that nothing of it is surfaced any more.
        storing: The ops that store a position with the broker.
        creating: The ops that create something.
        posting: The ops that publish one message besides those of all protocols.
        last_position: The last one that a log has; nothing is claimed of what lies behind it.
        least_limit: Bytes; with a smaller limit of frames nobody can say anything.
        fixed: Further arguments of ops that are not changed, because they tie ops together here.
        size_field: Bytes of a frame that a limit of its size does not count.
        answer_within_s: What a client may take to answer the server.
        ok, refusal: Codes of answers: yes, and a no that any answer can have.
        refusals: Further codes that answers are given: known ones, and such as nobody knows.
        subscribe_asks: Whether the op ``subscribe`` asks the server for something; if not, another op has.
        drains_on_close: Whether a close surfaces first all that has come.
        unseen_connections: Whether connections come, go and come again below the client: its transport sees
            to them and tells nobody.
        repeats: Whether a client writes a message again that has got no answer.
        redelivers: Whether a message comes again until it is settled, and clients know those that were.
        other_parts: What may stand in place of a part of a message, besides what any protocol can have there.
        connects_late: Whether a session is open without a connection; ops make those that they need.
        settles_s: How long a connect goes on behind the handshake, to hear from others.
        set_up: Frames that belong to the set-up of a connection, besides those of that role.
        answers_move: Whether an answer finds its way over a later connection, so that a loss ends no
            question.
        rosters: The ops that tell which others the client knows.
        listening: The ops that listen without a question to the server.
        asides: Of `asides.ASIDES`, those that base scripts are tried with.
        sending: The ops that send something to others, so that it can be said what and to whom.
        last_words: With what a client says that it wants no more, before it ends a subscription gracefully.
        passing: Codes of refusals that may be another answer the next time.
        greetings: What a client says on each of its connections, as soon as it is ready.
        troubles: Acts and parameters that are done to every connection for a while, at the same frame.
        refuses_by_itself: Codes with which a client refuses, without asking, what it knows to be refused.
    """

    protocol: ClassVar[str]
    answers: ClassVar[Mapping[type[Frame], type[Frame]]]
    questions: ClassVar[Mapping[type[Frame], type[Frame]]] = {}
    ops: ClassVar[Mapping[str, Asks]] = {}
    specimens: ClassVar[Mapping[type[Frame], Frame]] = {}
    not_made_up: ClassVar[tuple[type[Frame], ...]] = ()
    happenings: ClassVar[Mapping[str, Callable[[Any], None]]] = {}
    unasked: ClassVar[Mapping[str, Frame]] = {}
    noise: ClassVar[Mapping[str, Any]] = {}
    is_log: ClassVar[bool] = False
    crediting: ClassVar[tuple[str, ...]] = ()
    dropping: ClassVar[tuple[str, ...]] = ()
    closing: ClassVar[tuple[str, ...]] = ()
    storing: ClassVar[tuple[str, ...]] = ()
    creating: ClassVar[tuple[str, ...]] = ()
    posting: ClassVar[tuple[str, ...]] = ()
    last_position: ClassVar[int] = (1 << 63) - 1
    least_limit: ClassVar[int] = 256
    fixed: ClassVar[tuple[str, ...]] = ()
    size_field: ClassVar[int] = 0
    answer_within_s: ClassVar[float] = 1.0
    ok: ClassVar[Any] = 0
    refusal: ClassVar[Any] = 1
    refusals: ClassVar[Sequence[Any]] = ()
    drains_on_close: ClassVar[bool] = False
    unseen_connections: ClassVar[bool] = False
    subscribe_asks: ClassVar[bool] = True
    repeats: ClassVar[bool] = False
    redelivers: ClassVar[bool] = False
    other_parts: ClassVar[Mapping[str, bytes]] = {}
    connects_late: ClassVar[bool] = False
    settles_s: ClassVar[float] = 0.0
    set_up: ClassVar[tuple[type[Frame], ...]] = ()
    answers_move: ClassVar[bool] = False
    rosters: ClassVar[tuple[str, ...]] = ()
    listening: ClassVar[tuple[str, ...]] = ()
    sending: ClassVar[tuple[str, ...]] = ()
    last_words: ClassVar[type[Frame] | None] = None
    passing: ClassVar[tuple[Any, ...]] = ()
    greetings: ClassVar[tuple[type[Frame], ...]] = ()
    troubles: ClassVar[Sequence[tuple[str, Any]]] = ()
    refuses_by_itself: ClassVar[tuple[Any, ...]] = ()
    asides: ClassVar[tuple[str, ...]] = ("close", "cancel", "twice", "loss", "hurried")

    @cached_property
    def answers_in_order(self) -> bool:
        """Whether answers are told apart by their order alone, so that a connection is given up with a
        question that nobody waits for any more."""
        return find_protocol(self.protocol).answers_in_order

    @abstractmethod
    def codec(self, side: str) -> Codec:
        """A new decoder of what the ``client`` or the ``server`` is handed."""

    def codec_at(self, side: str, socket: str) -> Codec:
        """The same for one of the fake's sockets, where they speak otherwise; see `Conn.socket`."""
        return self.codec(side)

    def codecs(self, socket: str = "") -> tuple[Codec, Codec]:
        """Decoders of what client and server are handed, which may have to know of each other."""
        return self.codec_at("client", socket), self.codec_at("server", socket)

    def reads(self, broker: Any) -> bool:
        """Whether it can read what clients of this fake say: some have wires of several kinds."""
        return True

    def names(self, args: Args) -> tuple[str, str] | None:
        """What an op calls a target, and what the wire calls it, if it says so and the two may differ."""
        return None

    def is_garbage(self, frame: Malformed) -> bool:
        """Whether a client has to give the connection up, because it cannot skip this."""
        return True

    @abstractmethod
    def track(self, conn: Conn, facts: Facts) -> None:
        """Go through the frames of one connection and note what they mean, on `conn` and in `facts`."""

    def know(self, conns: Mapping[str, Conn], ops: Sequence[Any], facts: Facts) -> None:
        """Note what no frame tells by itself, and what several connections tell together; behind `track`."""
        return

    def neglected(self, case: Any) -> str:
        """Who of several that can answer was never asked, though there was reason to; "" if nobody was."""
        return ""

    def wrong_sending(self, case: Any, done: Any) -> str:
        """What is wrong with what the client has sent for an op of `sending`; "" if nothing is."""
        return ""

    def offered(self, case: Any) -> Sequence[tuple[Position, Any]]:
        """What the application offers to others: from which moment on, and what; as `Announced.what`."""
        return []

    def streamed(self, args: Args, result: Any) -> tuple[bytes | None, Args | None]:
        """The stream that an op was given, and the one that it returned, as a body in a report (a long one is
        told by its digest, see `same_body`); None where there is none."""
        return None, None

    def is_answer(self, asked: Frame, frame: Frame) -> bool:
        """Whether a frame of the server, with the key of a question, is of a kind that answers it."""
        return self.answers[type(asked)] is type(frame)

    def is_bearable(self, frame: Frame) -> bool:
        """Whether a run with this changed frame has an end: no beats every millisecond, no gigabytes."""
        return True

    def is_opening(self, frame: Frame) -> bool:
        """Whether a question declares something that has to be there again behind a loss."""
        return type(frame).spec.role_in("in") is Role.OPEN

    def located(self, answer: Frame) -> Mapping[str, bool]:
        """Which targets an answer speaks of, and whether each can be used; most answers speak of none."""
        return {}

    def properties_given(self, args: Args) -> Any:
        """What is to go with the body of a message, from a publish's arguments; see `Written.properties`."""
        return args.get("properties") or {}

    def properties_of(self, heard: Any) -> Any:
        """What an event ``message`` tells besides the body; see `Record.properties`."""
        return heard["meta"].get("properties") or {}

    def settings(self, options: Args) -> dict[str, Any]:
        """What a subscription with these options asks for besides its start, as in `Window.settings`."""
        return {}

    def is_same(self, told: bytes, due: bytes) -> bool:
        """Whether what a listener was told is what it was due."""
        return told == due

    def content(self, body: bytes, form: str) -> bytes:
        """What the application gave for a body on the wire, in a format of its client (`Hello.formats`)."""
        return body

    def holds(self, name: str, asked: Any, ordered: Any) -> bool:
        """Whether a setting is as it was ordered; a map may have entries of the client's own besides."""
        if isinstance(ordered, dict):
            return all(asked.get(key) == value for key, value in ordered.items())
        return bool(asked == ordered)

    def place(self, args: Args, key: Any) -> tuple[Hashable, ...]:
        """Where the outcome of a message is told, from a publish's arguments and the key it returned."""
        return args["target"], args.get("name") or "", key

    def is_code(self, told: Any, said: Any) -> bool:
        """Whether the code that an application was told is that of the server: some have number and word."""
        return bool(told == said)

    def spreads(self, args: Args) -> bool:
        """Whether an op is about other targets than the one it names, which the client finds by itself."""
        return False

    def wants(self, args: Args, body: bytes) -> bool:
        """Whether a subscription with these arguments is for messages with this body, of all that come."""
        return True

    def deadline_of(self, frame: Frame) -> float | None:
        """How long the client waits for the answer, seconds, if a question says so."""
        return None

    def is_silent(self, case: Any, question: Question, at: Position) -> bool:
        """Whether who has to answer has said nothing for so long that the client may take him for dead."""
        return False

    def wrong_roster(self, case: Any, told: Args, begun: Position, ended: Position) -> str:
        """What is wrong with what a client tells of others that it knows, by an op of `rosters`."""
        return ""

    def due(self, case: Any, args: Args, begun: Position) -> list[tuple[Position, Record]]:
        """What has to be surfaced to whom an op of `listening` has begun; by its ``sub``, in this order."""
        return []

    def stored(self, broker: Any) -> dict[str, list[tuple[Any, bytes]]]:
        """What the broker has at the end, by target: position and body."""
        return {}

    # frames that faults make

    @abstractmethod
    def said_by_server(self) -> Sequence[type[Frame]]:
        """The kinds of frames that acts may make up for the client."""

    def spellings(self, frame: Frame, data: Any) -> Mapping[str, Any]:
        """Other units on the wire that mean the same as this one, by what is otherwise."""
        return {}

    def payload_at(self, frame: Frame) -> int | None:
        """Where the messages begin in the bytes of a frame that carries some; None if it carries none."""
        return None

    def borders(self, frame: Frame, data: Any) -> Sequence[int]:
        """Where the parts of a message, or the messages in a frame, begin but for the first; bytes."""
        return ()

    def pieces(self, data: Any, points: Iterable[int]) -> list[Any]:
        """A unit cut behind so many bytes, as its transport may carry it; empty where nobody sees them."""
        if not isinstance(data, bytes | bytearray):
            return []
        inside = sorted({point for point in points if 0 < point < len(data)})
        return [bytes(data[start:end]) for start, end in pairwise((0, *inside, len(data)))]

    def other_versions(self, data: bytes) -> dict[str, bytes]:
        """A frame in versions that do not exist, by name; empty where the wire has no versions."""
        return {}

    def goodbye(self) -> Frame | None:
        """What a server says before it ends a connection; None if it says nothing."""
        return None

    def last_of(self, frame: Frame) -> Frame | None:
        """The same frame, which says that the connection ends behind it; None if no frame of its kind can."""
        return None

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
    """Ties the answers on one connection to their questions, by kind and key. For a model's `track`.

    Args:
        model: Whose `answers` and `questions` count.
    """

    def __init__(self, model: Model, conn: Conn, facts: Facts) -> None:
        self._conn = conn
        self._model = model
        self._facts = facts
        self._tables = {"in": (model.answers, facts.questions), "out": (model.questions, facts.asked_back)}
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
        asked.accepted = self._model.accepts(frame)
        status = type(frame).spec.status
        asked.code = None if status is None else getattr(frame, status)
        return asked

    def _answers(self, direction: str, asked: Frame, frame: Frame) -> bool:
        if direction == "in":
            return self._model.is_answer(asked, frame)
        return self._model.questions[type(asked)] is type(frame)


def key_of(frame: Frame) -> Hashable:
    """What ties a question to its answer; None if the frame has nothing of the kind."""
    name = type(frame).spec.key if hasattr(type(frame), "spec") else None
    key: Hashable = getattr(frame, name, None) if name is not None else None
    return key
