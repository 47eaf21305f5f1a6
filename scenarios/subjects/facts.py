"""What the scenarios need to know about a protocol, and how its fake is made to do things."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from conformance.clients.adapter.messages import Message, body_bytes, same_body
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect
from conformance.suite.client import Body, as_body
from fakebrokers.faults import drop, hold, reorder
from scenarios._common import LOSSES

if TYPE_CHECKING:
    from fakebrokers.faults import Fault
    from fakebrokers.faults.control import FaultControl
    from fakebrokers.journal import Record
    from fakebrokers.server import FakeServer


class Op(msgspec.Struct, frozen=True):
    """One op of a kind that waits for an answer.

    Attributes:
        label: For reports.
        asks: The frame that carries it.
        answer: The frame that ends it.
        args: Its arguments, without the session.
        timed: Whether the library ends it by a deadline of its own.
    """

    label: str
    op: str
    asks: str
    answer: str
    args: Mapping[str, Any]
    timed: bool = True

    @property
    def publishes(self) -> bool:
        """Whether it ends with an outcome."""
        return self.op == "publish"


class Facts(ABC):
    """What differs between the protocols; each fills it in. First what is data.

    Attributes:
        protocol: Its name.
        roles: What a protocol calls the client that publishes, and the one that consumes.
        rows: What differs in the rows of the protocol from what the scripts' decorators say, by id, by
            section (``NET-1``) or, under ``""``, for all; the narrower one wins. Each is a mapping of
            attributes of `Scenario`, such as ``roles``, ``ops``, ``sockets``, ``timeout_s``, ``revision``;
            of ``needs``, which are added; of ``variants``, those that there is a row for; and of ``server``,
            all settings but those that the script itself asks for.
        judged_by: Ids of the scenarios for several protocols by which its clients are judged; for protocols
            of other projects, which the catalogue does not have.
        variants: Settings of the fake by the name of the variant; ``""`` where there is just one.
        phases: Name of a phase to its step and the kind of frame of the fake that it waits for. Steps are
            ``connect``, ``open`` (the first publish), ``publish``, ``consume``, ``close`` and ``other``,
            which is `Subject.play_phase`.
        publishing, confirm, delivery: Kinds of frames.
        close_frame, close_answer: What a client sends to close, and what it answers when the server closes.
        maintenance_code: What a server says that goes down for maintenance.
        losses: Words of session events that report a loss, or of what a loss leads to.
        queue: Where everything goes unless a step says otherwise.
        in_flight: How many publishes may be in flight together without a loss.
        width: How many runs of the base script do not disturb each other.
        ways: Connections that a session needs at least.
        turns: How often a session plays the base script where the fault needs many connections.
        crowd: How many sessions make a crowd that comes back after a restart.
        wrong_width, wrong_s: How many runs are made at once while bytes are wrong, and their ops' deadline.
        large: Bytes of a message that takes long where bandwidth is little.
        connects_later: Whether a connect ends well without a server.
        connect_retries: Whether a connect may go on trying until its time-out.
        connect_may_hang: Whether a connect may never end once the session was closed; never a strict pass.
        linger_s: How long what was sent may keep a connection after a close.
        retries_steadily: Whether its clients come back at intervals that need not grow.
        attempts_in_15_s: How often a client may connect in that time for a connection that fails.
        slow_s: Deadline of ops while bytes come slowly, far beyond what they need.
        slow_options: Options of a connect whose client has to bear silence of some seconds.
        finds_losses: Whether the protocol lets a client find out that its server has vanished.
        bulk: Bytes of a message where many of them make up an amount.
        largest, beyond: Bytes of a message that is large and fine, and of one that is too large.
        messages_wait: Whether what was published waits at the fake until a consumer has got it.
    """

    protocol: ClassVar[str]
    roles: ClassVar[Mapping[str, str]] = {"publisher": "publisher", "consumer": "consumer"}
    rows: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    judged_by: ClassVar[tuple[str, ...]] = ()
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {"": {}}
    phases: ClassVar[Mapping[str, tuple[str, str]]]
    publishing: ClassVar[str]
    confirm: ClassVar[str]
    delivery: ClassVar[str]
    close_frame: ClassVar[str]
    close_answer: ClassVar[str]
    maintenance_code: ClassVar[int]
    losses: ClassVar[Sequence[str]] = LOSSES
    queue = "orders"
    in_flight = 10
    width = 6
    ways = 1
    turns = 1
    crowd = 20
    wrong_width = 50
    wrong_s = 2.0
    large = 48 * 1024
    connects_later = False
    connect_retries = False
    connect_may_hang = False
    linger_s = 0.0
    retries_steadily = False
    attempts_in_15_s = 30
    slow_s = 10.0
    slow_options: ClassVar[Mapping[str, Any]] = {}
    finds_losses = True
    bulk = 65536
    largest = 1_000_000
    beyond = 1_048_577
    messages_wait = True

    def __init__(self, broker: FakeServer, client: Client, expect: Expect) -> None:
        self.broker = broker
        self.client = client
        self.expect = expect

    # the fake's side

    @staticmethod
    def liveness(limit_s: float) -> dict[str, Any]:
        """Settings of a fake whose clients give it up when it says nothing for so long.

        Empty where clients are configured with that themselves: see `keeping_alive`.
        """
        return {}

    def settings(self, limit_s: float) -> dict[str, Any]:
        """All settings of another fake whose clients give it up when it says nothing for so long."""
        return {**self.rows.get("", {}).get("server", {}), **self.liveness(limit_s)}

    @property
    def wire(self) -> FakeServer:
        """What clients connect to: the fake, or the byte proxy in front of it."""
        return self.broker

    @property
    def faults(self) -> FaultControl:
        """Faults in the bytes, and those of connections and listeners."""
        return self.wire.faults

    @abstractmethod
    def add_queue(self, name: str) -> None:
        """The fake has this queue; harmless if it has."""

    @abstractmethod
    def stored(self, name: str) -> list[bytes]:
        """The messages of a queue at the fake, as the client sent them."""

    @abstractmethod
    def put(self, name: str, bodies: Sequence[bytes]) -> None:
        """The fake gets these messages, as if this client had sent them."""

    @abstractmethod
    def established(self, since: int) -> bool:
        """Whether a connection was set up, its handshake done, after that record of the journal."""

    @abstractmethod
    def subscriptions(self, since: int) -> list[Record]:
        """The answers that granted a subscription after that record."""

    @abstractmethod
    def ask_to_close(self, connection: str, code: int, reason: str) -> None:
        """The server says that it will close."""

    def holds(self, body: bytes, name: str | None = None) -> int:
        """How often the fake has this message, also where the client wraps bodies."""
        return sum(body in each for each in self.stored(name or self.queue))

    def next_publish(self) -> dict[str, Any]:
        """What the next publish on `wire` is known by: arguments of a fault."""
        return {"kind": self.publishing}

    def copies(self, body: bytes, name: str | None = None) -> int:
        """How many messages with this body the client has published, those sent again not counted."""
        return self.holds(body, name)

    def is_open(self) -> list[str]:
        """The connections that are open."""
        return [found["name"] for found in self.wire.connections]

    def accepted(self, since: int = 0) -> list[float]:
        """When connections were accepted; seconds since the fake started. `since`: a record of `wire`."""
        return [r.at for r in self.wire.journal.select(kind="accepted", since=since)]

    def shut(self, for_s: float | None = None) -> None:
        """End all connections with RST and refuse new ones, for so long or until `reopen`."""
        self.wire.refuse(for_s)
        self.wire.kill(how="rst")

    def reopen(self) -> None:
        """Accept new connections again, after `shut`."""
        self.wire.restart()

    def only_handed_over(self, since: int) -> bool:
        """Whether connections made since that record, after a close, have brought what was given to the
        client before it, and have ended: some libraries send that whatever it takes."""
        return False

    def settled(self, since: int) -> list[Record]:
        """The acknowledgements of deliveries that came after that record."""
        return []

    # what the fake does wrong

    def cuts(self, longest: int) -> Sequence[int]:
        """Where a connection is cut on which the server says so many bytes; one connection for each."""
        return [*range(1, 33), *range(48, max(longest, 400), 16)]

    @abstractmethod
    def refuse_publishes(self) -> None:
        """The next publish is refused."""

    @abstractmethod
    def malformed(self) -> bytes:
        """A frame that no server may send."""

    @abstractmethod
    def bad_delivery(self) -> None:
        """The next delivery is one that the client has to complain about."""

    def unknown_fields(self) -> Mapping[str, tuple[str, str]]:
        """From now on known messages have unknown fields, members or parts.

        Returns:
            The faults by name, each with what has to be said if it never takes place, and the criterion's id.
        """
        raise NotImplementedError(f"nothing is known that {self.protocol} may have more")

    def wrong_bytes(self, runs: int) -> None:
        """Each of so many runs of the base script may meet a wrong byte; the faults are ``seed *``."""
        raise NotImplementedError(f"no byte of {self.protocol} can be wrong")

    def answer_nobody(self, count: int) -> None:
        """Say so many answers to no request, about 1 KiB each; only where answers name what they answer."""
        raise NotImplementedError(f"answers of {self.protocol} name no request")

    def shuffled(self, kind: str, count: int) -> Fault:
        """So many answers of that kind leave in an order drawn from the seed."""
        return reorder(window=count, order="shuffle", within_s=0.05, kind=kind, direction="out")

    def withholding(self, **fault: Any) -> Fault:
        """Answers wait until the fault is removed; see `hold` for its settings."""
        return hold(direction="out", **fault)

    def losing_confirms(self) -> Fault:
        """Now and then a confirm does not come."""
        return drop(kind=self.confirm, direction="out", probability=0.002, name="lost confirms")

    def confirm_later(self) -> None:  # noqa: B027 - nothing to do for most
        """From now on publishes are in flight for a moment; only where a fake confirms them at once."""

    # the client's side

    @property
    def publishes(self) -> bool:
        """Whether the client has the role that publishes."""
        return self.client.has_role(self.roles["publisher"])

    @property
    def publishes_in_time(self) -> bool:
        """Whether the library ends a publish by a deadline of its own."""
        return self.client.can("ack_timeout")

    @abstractmethod
    def ops(self, queue: str, tag: str = "") -> list[Op]:
        """One op of each kind that waits for an answer and that the client has; `tag` makes names new."""

    @abstractmethod
    def value_made_for(self, number: int) -> tuple[Op, Any] | None:
        """An op whose answer belongs to this number only, and how it looks; None if the client has none."""

    @abstractmethod
    async def heartbeats(self) -> None:
        """Demand, for some periods from now on, that the client's heartbeats keep theirs."""

    def value_of(self, result: Result) -> Any:
        """What `value_made_for` promised, from the result of its op."""
        return result.value

    def keeping_alive(self, limit_s: float) -> dict[str, Any]:
        """Options of a connect with which a client gives a silent server up after so long at the latest,
        and after half of that at the earliest. Empty where the server's settings say that.
        """
        return {}

    def found_within_s(self, limit_s: float) -> float:
        """By when a client that gives a silent server up after so long has found it lost."""
        return limit_s * 1.2 + 1.0

    def patient_op(self, queue: str) -> Op | None:
        """An op that ends at its deadline and leaves the session's connections as they are."""
        return next((op for op in self.ops(queue) if op.timed), None)

    def further_ops(self, queue: str) -> list[Op]:
        """Ops in other ways than those of the base script's own connections."""
        return []

    def inner_ops(self, queue: str) -> list[tuple[Op, Any]]:
        """Ops for a message callback, each with its value; None for one that publishes ``inner`` there."""
        args = {"target": queue, "body": {"text": "inner"}, "wait": True}
        publish = Op("publish", "publish", self.publishing, self.confirm, args)
        made = self.value_made_for(1)
        return [(publish, None), *([] if made is None else [made])]

    def carries(self, message: Message, body: Body) -> bool:
        """Whether a message that was delivered has this body."""
        given = as_body(body)
        return isinstance(given, dict) and same_body(message.body, body_bytes(given))

    def identity(self, message: Message) -> Any:
        """What distinguishes a message of the long run from all others."""
        return message.position
