"""What frames mean, in words that hold across protocols. A protocol's model notes them; invariants read them.

Everything has a position in the trace, so that a finding can point at its evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conformance.run.trace import Position
from conformance.run.view import Conn
from fakebrokers.core.frames import Frame


class Should(str):
    """A sentence about something illegal that harms no receiver: a violation of level SHOULD."""

    __slots__ = ()


@dataclass(slots=True)
class Question:
    """A frame that wants an answer, and the first answer to it.

    Attributes:
        key: What ties the two together.
        accepted: Whether the answer says yes; None while there is none.
        to: Who was asked, where it is not the server itself.
        code: The code of the answer, if it has one.
    """

    conn: Conn
    frame: Frame
    key: Hashable
    asked: Position
    answer: Frame | None = None
    answered: Position | None = None
    accepted: bool | None = None
    code: Any = None
    to: Hashable = None


class Written(NamedTuple):
    """A message that the client has put on the wire.

    Attributes:
        place: What its outcome is reported by: target, name of the producer, id.
        body: As it is on the wire; None where it is packed with others.
        is_deduplicated: Whether the broker tells a second copy from a first.
        properties: What goes with the body, in the words of the adapter protocol; None: not to be compared.
        producer: Its number on the connection, where producers have one: two without a name have one place.
        packed: The bodies in it, where several messages are packed together; None where they cannot be read.
    """

    conn: Conn
    at: Position
    place: tuple[Hashable, ...]
    body: bytes | None = None
    is_deduplicated: bool = False
    properties: Any = None
    producer: Hashable = None
    packed: tuple[bytes, ...] | None = None

    @property
    def is_opaque(self) -> bool:
        """Whether nobody can say which messages it holds."""
        return self.body is None and self.packed is None

    def unwrapped(self, content: Callable[[bytes], bytes]) -> Written:
        """The same with what bodies hold in the place of the bodies."""
        body = None if self.body is None else content(self.body)
        packed = None if self.packed is None else tuple(map(content, self.packed))
        return self._replace(body=body, packed=packed)


class Oversized(NamedTuple):
    """The client has written more than the server takes.

    Attributes:
        named: When the server had said how much that is.
        what: For people.
        size, limit: Bytes.
    """

    conn: Conn
    named: Position
    at: Position
    what: str
    size: int
    limit: int


class Settled(NamedTuple):
    """The broker's word on one message.

    Attributes:
        stored: Whether it says that it has the message.
        is_open: Whether the client still knows for whom this is (its producer was not dropped before).
        details: What else the broker says of it, as `meta` of a result has it.
    """

    conn: Conn
    at: Position
    place: tuple[Hashable, ...]
    stored: bool
    code: Any = None
    is_open: bool = True
    details: Mapping[str, Any] = {}


@dataclass(slots=True)
class IdUse:
    """A number that the client has taken for something of its own (a producer, a subscription).

    Attributes:
        space: What is numbered; each connection has its own.
        freed: When the number was free again.
        what: For people.
    """

    conn: Conn
    space: str
    number: Hashable
    taken: Position
    what: str
    freed: Position | None = None


class Record(NamedTuple):
    """A message as it was delivered.

    Attributes:
        position: Its place in the log, or its id.
        ts: When it was written, if the wire says so; None: not to be compared.
        properties: What goes with the body, in the words of the adapter protocol; None: not to be compared.
    """

    position: Any
    body: bytes
    ts: Any = None
    properties: Any = None


class ArrivedFrame(NamedTuple):
    """A frame with messages for a subscription.

    Attributes:
        next_position: The position that follows it, in a log.
        damaged: Something of it cannot be read, and it has to be reported to the application.
        doubtful: Messages that are intact in a damaged frame: the application may get them, and need not.
    """

    at: Position
    records: tuple[Record, ...]
    next_position: int | None = None
    damaged: bool = False
    doubtful: tuple[Record, ...] = ()


class Handed(NamedTuple):
    """A message as it was handed to the client, where it comes again until it is settled.

    Attributes:
        key: What it is settled by.
        body: See `reported.joined`.
        damaged: It cannot be read, and it has to be reported to the application.
        details: What else is reported of it.
        stale_from_s: When it will have been handed to somebody again, as it says itself, seconds since 1970;
            None if it does not say so.
    """

    conn: Conn
    at: Position
    key: bytes
    body: bytes = b""
    damaged: bool = False
    details: Mapping[str, Any] = {}
    stale_from_s: float | None = None


class Answered(NamedTuple):
    """The client's word on a message that it was handed."""

    conn: Conn
    at: Position
    key: bytes
    positive: bool


class Refused(NamedTuple):
    """The server has said of a target that it cannot be used, or has left the question unanswered."""

    at: Position
    target: str
    code: Any


class Complaint(NamedTuple):
    """An error of the server that answers no question.

    Attributes:
        about_message: It refuses a message whose outcome the application did not want.
    """

    conn: Conn
    at: Position
    code: Any
    about_message: bool = False


class Dropped(NamedTuple):
    """The server has dropped what a connection had of a target."""

    conn: Conn
    at: Position
    target: str


@dataclass(slots=True)
class Window:
    """One life of a subscription: on one connection, from its question to its end.

    Attributes:
        target: What is consumed.
        number: Its id on the connection.
        start: Where it was asked to begin, as the model writes the positions of ops.
        opened: When the server said yes.
        closed: When the server or the client ended it, or the connection did.
        settings: What else was asked for, to compare with what was ordered.
        granted: How many further deliveries the client has allowed, and when.
        is_disputed: The server has gone on after what it had called the end.
    """

    conn: Conn
    target: str
    number: Hashable
    start: Any
    asked: Position
    settings: dict[str, Any] = field(default_factory=dict)
    opened: Position | None = None
    closed: Position | None = None
    unsubscribed: Position | None = None
    refused: Any = None
    arrivals: list[ArrivedFrame] = field(default_factory=list)
    granted: list[tuple[Position, int]] = field(default_factory=list)
    is_disputed: bool = False


class Noted(NamedTuple):
    """A position that the client has stored with the broker."""

    at: Position
    target: str
    name: str
    position: Any


class Confirmed(NamedTuple):
    """The client has informed the broker that it is done with a message; the key is `Record.position`."""

    conn: Conn
    at: Position
    target: str
    key: Any


class Sent(NamedTuple):
    """A frame of the client for another, and to whom it goes."""

    conn: Conn
    at: Position
    to: Hashable
    frame: Frame


class Configured(NamedTuple):
    """A subscription was given these settings, in the words of the op that orders them."""

    at: Position
    target: str
    options: dict[str, int]


@dataclass(slots=True)
class Listening:
    """The client has informed a server what it listens to, where servers carry what clients say to each
    other.

    Attributes:
        ended: When it has said that it listens to that no more.
    """

    conn: Conn
    at: Position
    topic: str
    ended: Position | None = None


class Announced(NamedTuple):
    """The client has informed others what it offers; `what` can be compared with `Traits.offered`."""

    conn: Conn
    at: Position
    what: Any


@dataclass(slots=True)
class Flow:
    """A stream, put together from its pieces.

    Attributes:
        direction: ``in`` of an op of the client, ``out`` of the answer to one, ``served`` of a request to it.
        question: What it is the answer to, or belongs to; None if it is the client that was asked.
        begun: When the first of it was there.
        is_sure: Whether the client has to have read all of it.
        is_opened: Whether its beginning has come.
        pieces: By number, each once, as they came first.
        is_doubled: Whether a piece has come again before the end.
        has_two_ends: Whether the end has come again before all had come.
        last: The number after the last piece; None while nobody has said so.
        whole: When all pieces were there.
        error: With what it ended, if it broke off; None for a proper end.
        code: The code of that, if it has one.
        words: The words of that, if it has any.
    """

    direction: str
    question: Question | None
    begun: Position
    is_opened: bool = False
    is_sure: bool = True
    pieces: dict[int, bytes] = field(default_factory=dict)
    is_doubled: bool = False
    has_two_ends: bool = False
    last: int | None = None
    whole: Position | None = None
    error: Any = None
    code: Any = None
    words: str = ""

    @property
    def body(self) -> bytes:
        """The pieces in their order, up to the first that is missing."""
        there = 0
        while there + 1 in self.pieces:
            there += 1
        return b"".join(self.pieces[number] for number in range(1, there + 1))

    def note(self, at: Position) -> None:
        """Note when nothing is missing any more."""
        is_over = self.is_opened and self.last is not None
        if self.whole is None and is_over and self.pieces.keys() == set(range(1, self.last or 0)):
            self.whole = at


@dataclass(slots=True)
class Facts:
    """All of one run.

    Attributes:
        questions: Those of the client.
        asked_back: Those of the server.
        misused: Frames of the client for something that it does not have; with a sentence.
        broken: Frames of the client that can be read, and contradict themselves or an earlier one; with a
            sentence, which may be a `Should`.
        configured: What subscriptions were given, where a protocol has frames of their own for that.
        unordered: What of that nobody has ordered; with a sentence.
        deaf: Where the client does not listen to what is sent to it; with a sentence.
        overheard: Where the client listens to what is sent to others; with a sentence.
        needless: Where the client asks what it had been given, and no op wants it; with a sentence that says
            whom.
        leads_to: Where messages for a target may be written that leads to others, as the server has said.
        wrong: Answers of the client that do not say what the server has asked for; with a sentence.
    """

    questions: list[Question] = field(default_factory=list)
    asked_back: list[Question] = field(default_factory=list)
    misused: list[tuple[Position, str]] = field(default_factory=list)
    broken: list[tuple[Position, str]] = field(default_factory=list)
    configured: list[Configured] = field(default_factory=list)
    unordered: list[tuple[Position, str]] = field(default_factory=list)
    listening: list[Listening] = field(default_factory=list)
    deaf: list[tuple[Position, str]] = field(default_factory=list)
    overheard: list[tuple[Position, str]] = field(default_factory=list)
    needless: list[tuple[Position, str]] = field(default_factory=list)
    wrong: list[tuple[Position, str]] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    oversized: list[Oversized] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    ids: list[IdUse] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    handed: list[Handed] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)
    noted: list[Noted] = field(default_factory=list)
    confirmed: list[Confirmed] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    announced: list[Announced] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    leads_to: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def unwrap(self, content: Callable[[bytes], bytes]) -> None:
        """Take bodies out of the format in which the client puts them."""
        self.written = [one.unwrapped(content) for one in self.written]

        def plain(records: Iterable[Record]) -> tuple[Record, ...]:
            return tuple([one._replace(body=content(one.body)) for one in records])

        for window in self.windows:
            window.arrivals = [
                arrival._replace(records=plain(arrival.records), doubtful=plain(arrival.doubtful))
                for arrival in window.arrivals
            ]

    def sort(self) -> None:
        """Put everything into the order in which it happened, across connections."""
        for questions in (self.questions, self.asked_back):
            questions.sort(key=lambda one: one.asked)
        self.windows.sort(key=lambda one: one.asked)
        self.ids.sort(key=lambda one: one.taken)
        self.written.sort(key=lambda one: one.at)
        self.settled.sort(key=lambda one: one.at)
        self.handed.sort(key=lambda one: one.at)
        self.answered.sort(key=lambda one: one.at)
        self.noted.sort(key=lambda one: one.at)
        self.confirmed.sort(key=lambda one: one.at)
        self.announced.sort(key=lambda one: one.at)
