"""What a scenario for all protocols may do: one class per protocol fills in the rest."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from conformance.adapter.base import Call
from conformance.adapter.messages import Event, Message, same_body
from conformance.adapter.result import Result
from conformance.suite import Client, Expect
from conformance.suite.expect import SetupFailed

if TYPE_CHECKING:
    from fakebrokers.journal import Record
    from fakebrokers.server import FakeServer

LOSSES = ("connection_lost", "reconnecting", "reconnected", "disconnected", "target_closed")
ENDS = ("target_closed", "disconnected")
Check = Callable[[Result, str], Any]


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


class Script(ABC):
    """The base script "connect, open, publish 3 with confirm, consume 3 with ack, close", and its parts.

    Attributes:
        phases: Name of a phase to the kind of frame of the fake that it waits for.
        publishing, confirm, delivery: Kinds of frames.
        farewell, goodbye_answer: What a client sends to close, and what it answers to the server's goodbye.
        queue: Where everything goes unless a step says otherwise.
    """

    phases: ClassVar[Mapping[str, str]]
    publishing: ClassVar[str]
    confirm: ClassVar[str]
    delivery: ClassVar[str]
    farewell: ClassVar[str]
    goodbye_answer: ClassVar[str]
    queue = "orders"

    def __init__(self, broker: FakeServer, client: Client, expect: Expect) -> None:
        self.broker = broker
        self.client = client
        self.expect = expect

    # the fake's side

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
    def goodbye(self, connection: str, code: int, reason: str) -> None:
        """The server says that it will close."""

    def holds(self, body: bytes, name: str | None = None) -> int:
        """How often the fake has this message, whatever the client wraps bodies in."""
        return sum(body in each for each in self.stored(name or self.queue))

    def is_open(self) -> list[str]:
        """The connections that stand."""
        return [found["name"] for found in self.broker.connections]

    def accepted(self, since: int = 0) -> list[float]:
        """When connections were accepted; seconds since the fake started."""
        return [r.at for r in self.broker.journal.select(kind="accepted", since=since)]

    def shut(self, for_s: float | None = None) -> None:
        """End all connections with RST and refuse new ones, for so long or until `reopen`."""
        self.broker.call(self.broker.refuse, for_s, "refused")
        self.broker.kill(how="rst")

    def reopen(self) -> None:
        """Let new connections in."""
        self.broker.restart()

    # the client's side

    @abstractmethod
    def ops(self, queue: str, tag: str = "") -> list[Op]:
        """One op of each kind that waits for an answer and that the client has; `tag` makes names new."""

    @abstractmethod
    def value_made_for(self, number: int) -> tuple[Op, Any] | None:
        """An op whose answer belongs to this number only, and how it looks; None if the client has none."""

    @abstractmethod
    def refuse_publishes(self) -> None:
        """The next publish is refused."""

    @abstractmethod
    def malformed(self) -> bytes:
        """A frame that no server may send."""

    @abstractmethod
    def orphans(self, count: int) -> bytes:
        """So many answers to nobody, about 1 KiB each."""

    @abstractmethod
    def bad_delivery(self) -> None:
        """The next delivery is one that the client has to complain about."""

    @abstractmethod
    async def heartbeats(self) -> None:
        """Demand, for some periods from now on, that the client's heartbeats keep theirs."""

    def begin(self, op: Op, timeout: float, session: str = "s1") -> Call:
        """Start an op."""
        return self.client.begin(op.op, timeout, session=session, **op.args)

    def deadline_s(self, op: Op, timeout: float) -> float:
        """The deadline of an op: the library's own, else `timeout`."""
        return self.client.deadline_s("publish" if op.publishes else "request", timeout)

    def bodies(self, count: int, tag: str) -> list[bytes]:
        """Messages of 16 bytes that tell where they belong."""
        return [f"{tag[:10]:_<10}{number:06}".encode() for number in range(count)]

    async def run(
        self,
        session: str = "s1",
        *,
        count: int = 3,
        check: Check | None = None,
        timeout: float = 5.0,
        at_once: bool = False,
        bodies: Sequence[bytes] = (),
        case: str = "",
    ) -> None:
        """The base script on a queue of its own; every step is demanded to go as without a fault.

        Args:
            check: Judges each result; default: a criterion of the requirement.
            at_once: All publishes in flight together.
            case: What the steps are called in criteria, besides their name.
        """
        good = check or (lambda result, step: self.expect.ok(result, f"{prefix}{step}"))
        prefix = f"{case}: " if case else ""
        queue = f"{self.queue}-{session}"
        self.add_queue(queue)
        wanted = list(bodies or self.bodies(count, session))
        mark = len(self.client.events)
        good(await self.client.begin_connect(session, timeout=timeout), "connect works")
        if at_once:
            calls = [self._publish(queue, body, session, timeout) for body in wanted]
            results = [await call for call in calls]
        else:
            results = [await self._publish(queue, body, session, timeout) for body in wanted]
        for number, result in enumerate(results):
            good(result, f"publish {number + 1} is acked")
        await self.consume(queue, wanted, session=session, check=good, timeout=timeout, prefix=prefix)
        trouble = self.troubles(mark, session)
        self.expect.that(not trouble, f"{prefix}no error event, no reconnect", trouble[:2])
        good(await self.client.begin("close", timeout, session=session), "close works")

    def _publish(self, queue: str, body: bytes, session: str, timeout: float) -> Call:
        return self.client.begin_publish(queue, body, session=session, timeout=timeout)

    async def consume(
        self,
        queue: str,
        wanted: Sequence[bytes],
        *,
        session: str,
        check: Check,
        timeout: float,
        prefix: str = "",
    ) -> list[Message]:
        """Consume from the first message on, and demand just these messages in order."""
        sub = f"{session}-sub"
        check(await self.subscribe(queue, sub, session, timeout), "subscribe works")
        got = await self.client.wait_messages(len(wanted), sub, timeout)
        same = len(got) == len(wanted) and all(
            same_body(message.body, body) for message, body in zip(got, wanted, strict=True)
        )
        seen = f"{len(got)} of {len(wanted)} came: {[message.body for message in got][:5]}"
        criterion = f"{prefix}the messages are surfaced once, in order and intact"
        if check == self.expect.prepared and not same:
            raise SetupFailed(criterion, seen)
        self.expect.that(same, criterion, seen)
        return got

    def subscribe(
        self, queue: str, sub: str = "c1", session: str = "s1", timeout: float = 5.0, **options: Any
    ) -> Call:
        """Start to consume, from the first message on unless the options say otherwise."""
        return self.client.begin(
            "subscribe",
            timeout,
            session=session,
            sub=sub,
            target=queue,
            options={**self.from_first(), **options},
            on_message={"mode": "event"},
        )

    def from_first(self) -> dict[str, Any]:
        """Options with which a subscription gets what is there already."""
        return {}

    async def rehearse(self, **more: Any) -> None:
        """The base script without a fault: a client that cannot do that is judged elsewhere."""
        await self.run("rehearsal", check=self.expect.prepared, **more)

    def troubles(self, since: int, session: str | None = None) -> list[Event]:
        """Events that tell of errors and losses."""
        return [
            event
            for event in self.client.events[since:]
            if (event.event == "error" or (event.event == "session" and event["what"] in LOSSES))
            and session in (None, event.fields.get("session"))
        ]

    def told_of_the_end(self, since: int) -> list[Event]:
        """What told the application that a subscription is over for good."""
        return [
            event
            for event in self.client.events[since:]
            if event.event == "error" or (event.event == "session" and event["what"] in ENDS)
        ]

    async def ready(self, session: str = "s1", queue: str | None = None, **options: Any) -> None:
        """Prepare: connected, and one message published, so that all connections stand."""
        name = queue or self.queue
        self.add_queue(name)
        await self.client.connected(session, **options)
        if self.client.has_role("publisher"):
            self.expect.prepared(await self._publish(name, b"the first message", session, 5.0))

    def prompt(self, session: str) -> Call:
        """A publish that nobody judges: some clients look for a new connection only when they need one."""
        return self._publish(self.queue, b"is anybody there", session, 10.0)

    async def works_again(
        self, criterion: str, *, within_s: float, session: str = "s1", queue: str | None = None
    ) -> float:
        """Publish again and again until one is acked; demand that for `criterion`. Returns the seconds."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        number = 0
        last = ""
        while loop.time() - begun < within_s:
            number += 1
            body = f"try {number} of {session} at {self.broker.journal.last_seq}".encode()
            result = await self._publish(queue or self.queue, body, session, 2.0)
            if result.ok:
                here = self.holds(body, queue)
                self.expect.equal(here, 1, f"{criterion}: what is acked is at the broker once")
                return loop.time() - begun
            last = str(result)
            await asyncio.sleep(0.2)
        self.expect.that(False, criterion, f"not within {within_s:.0f} s; the last of {number} tries: {last}")
        raise AssertionError

    async def until(self, condition: Callable[[], object], within_s: float) -> bool:
        """Wait for something that no event tells; whether it came."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while not condition():
            if loop.time() > deadline:
                return False
            await asyncio.sleep(0.02)
        return True
