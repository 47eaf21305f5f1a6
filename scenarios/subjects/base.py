"""What a scenario for all protocols may do: the base script, its steps, and waiting for the client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import Event, Message, same_body
from conformance.clients.adapter.result import Result
from conformance.suite.client import Body
from conformance.suite.expect import SetupFailed, slug
from fakebrokers.server import FakeServer
from scenarios._common import outcomes, until
from scenarios.subjects.facts import Facts, Op

ENDS = ("target_closed", "disconnected")


class Check(Protocol):
    """What is made of the result of a step, which the words and the id of a criterion name."""

    def __call__(self, result: Result, criterion: str, /, *, id: str) -> Any:
        """Demand that the step has worked; returns the result's value."""


class Subject(Facts):
    """The base script "connect, open, publish 3 with confirm, consume 3 with ack, close", and its parts.

    Where no messages are confirmed, a publish is what ends with an answer (a call and its response), and
    a delivery is what the fake sends without being asked (a request, an event).
    """

    def beside(self, broker: FakeServer) -> Self:
        """The same for another fake of the protocol, to which the same client connects."""
        return type(self)(broker, self.client, self.expect)

    # single steps

    def begin(self, op: Op, timeout: float, session: str = "s1") -> Call:
        """Begin an op; returns without waiting for its end."""
        return self.client.begin(op.op, timeout, session=session, **op.args)

    def begin_connect(self, session: str = "s1", *, timeout: float = 5.0, **options: Any) -> Call:
        """Start to connect; `endpoints` and other options as in `Client.begin_connect`."""
        return self.client.begin_connect(session, timeout=timeout, **options)

    async def begin_opening(self, session: str = "s1", timeout: float = 5.0, **options: Any) -> Call:
        """Start the first op that reaches the server: connect, unless clients connect later than that."""
        return self.begin_connect(session, timeout=timeout, **options)

    def opening_s(self, timeout: float) -> float:
        """The deadline of what `begin_opening` starts."""
        return self.client.deadline_s("connect", self.client.deadline_s("request", timeout))

    async def connected(self, session: str = "s1", queue: str | None = None, **options: Any) -> None:
        """Prepare: connected, and the queue opened where clients have to."""
        self.expect.prepared(await self.begin_connect(session, **options))
        await self.open(queue or self.queue, session, self.prepares, 5.0)

    async def open(self, queue: str, session: str, check: Check, timeout: float) -> None:
        """Open a queue for publishing and consuming, where clients have to. The fake has it already."""

    def begin_publish(
        self,
        queue: str,
        body: Body = b"hello",
        *,
        session: str = "s1",
        timeout: float = 5.0,
        wait: bool = True,
    ) -> Call:
        """Start a publish. With `wait` false it may end once it is sent: see `outcomes`."""
        return self.client.begin_publish(queue, body, session=session, timeout=timeout, wait=wait)

    async def publish(self, queue: str, body: Body = b"hello", **more: Any) -> Result:
        """Publish and wait for the outcome."""
        result = await self.begin_publish(queue, body, **more)
        self.client.results.append(result)
        return result

    def outcomes(self, results: Sequence[Result], since: int) -> dict[int, str]:
        """The outcomes of publishes that did not wait and ended with these results, by the publish's id.

        Args:
            since: Only what came after so many events.
        """
        return outcomes(self.client, since)

    async def reported_outcome(self, result: Result, since: int) -> bool:
        """Whether the library reported the outcome of a publish that did not wait."""
        return await self.client.event("outcome", 3.0, since, id=result.id) is not None

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

    def subscribe_and_settle(self, queue: str) -> Call:
        """As `subscribe`, and acknowledge all messages where that is left to the application."""
        return self.subscribe(queue)

    def subscribe_and_do(self, queue: str, inner: Sequence[Op]) -> Call:
        """Start to consume as `subscribe`, and run these ops in the callback of each message."""
        ops = [{"op": op.op, "args": {"session": "s1", **op.args}, "timeout_ms": 5000} for op in inner]
        return self.client.begin(
            "subscribe",
            session="s1",
            sub="c1",
            target=queue,
            options=self.from_first(),
            on_message={"mode": "event", "do": ops},
        )

    def from_first(self) -> dict[str, Any]:
        """Options with which a subscription gets what is there already."""
        return {}

    def messages(self, sub: str = "c1") -> list[Message]:
        """What the application got on a subscription so far, in order."""
        return self.client.messages(sub)

    async def wait_messages(self, count: int, sub: str = "c1", within_s: float = 5.0) -> list[Message]:
        """The messages as soon as there are `count`, or what there is then."""
        return await self.client.wait_messages(count, sub, within_s)

    async def go_on_refused(self) -> None:
        """What an application does after a refused message, where the protocol asks for anything."""

    def prompt(self, session: str) -> Call:
        """A publish that is not judged: some clients look for a new connection only when they need one."""
        return self.begin_publish(self.queue, b"is anybody there", session=session, timeout=10.0)

    # the base script

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
        turns: int = 1,
    ) -> None:
        """The base script on a queue of its own; every step is demanded to go as without a fault.

        Args:
            check: Judges each result; default: a criterion of the requirement.
            at_once: All publishes in flight together.
            case: What the steps are called in criteria, besides their name.
            turns: How often between connect and close, each time on another queue.
        """
        prefix = f"{case}: " if case else ""

        def works(result: Result, criterion: str, *, id: str) -> Any:
            return self.expect.ok(result, f"{prefix}{criterion}", id=slug("{}{}", prefix, id))

        good = check or works
        wanted = list(bodies or self.bodies(count, session))
        mark = len(self.client.events)
        good(await self.begin_connect(session, timeout=timeout), "connect works", id="connect-works")
        for turn in range(turns):
            queue = f"{self.queue}-{session}" + (f"-{turn}" if turn else "")
            self.add_queue(queue)
            await self.open(queue, session, good, timeout)
            await self.exchange(
                queue, wanted, session=session, check=good, timeout=timeout, prefix=prefix, at_once=at_once
            )
        trouble = self.troubles(mark, session)
        self.expect.that(
            not trouble,
            f"{prefix}no error event, no reconnect",
            trouble[:2],
            id=slug("{}no-error-event-no-reconnect", prefix),
        )
        good(await self.client.begin("close", timeout, session=session), "close works", id="close-works")

    async def exchange(
        self,
        queue: str,
        wanted: Sequence[bytes],
        *,
        session: str,
        check: Check,
        timeout: float,
        prefix: str = "",
        at_once: bool = False,
    ) -> None:
        """Between connect and close: these messages there and back, and one in each further way."""
        calls = (self.begin_publish(queue, body, session=session, timeout=timeout) for body in wanted)
        for number, call in enumerate(list(calls) if at_once else calls, 1):
            check(await call, f"publish {number} is acked", id="publish-n-is-acked")
        await self.consume(queue, wanted, session=session, check=check, timeout=timeout, prefix=prefix)
        await self.other_ways(queue, session, check=check, timeout=timeout, prefix=prefix)

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
        """Consume from the first message on, and demand just these messages, in order where it is kept."""
        sub = f"{queue}-sub"
        check(await self.subscribe(queue, sub, session, timeout), "subscribe works", id="subscribe-works")
        got = await self.wait_messages(len(wanted), sub, timeout)
        same = self.are(got, wanted)
        seen = f"{len(got)} of {len(wanted)} came: {[message.body for message in got][:5]}"
        self.demand(
            same,
            f"{prefix}the messages are delivered once, in order and intact",
            seen,
            check,
            id=slug("{}the-messages-are-surfaced-once-in-order-and-intact", prefix),
        )
        return got

    @property
    def keeps_order(self) -> bool:
        """Whether messages reach the application in the order in which they came."""
        return True

    def are(self, got: Sequence[Message], wanted: Sequence[bytes]) -> bool:
        """Whether the application got these messages, each once."""
        left = list(got)
        for body in wanted:
            place = next((n for n, message in enumerate(left) if same_body(message.body, body)), None)
            if place is None or (place and self.keeps_order):
                return False
            del left[place]
        return not left

    async def other_ways(
        self, queue: str, session: str, *, check: Check, timeout: float, prefix: str = ""
    ) -> int:
        """Publish and consume one message in each further way that the protocol has; how many these are."""
        return 0

    async def rehearse(self, **more: Any) -> None:
        """The base script without a fault: a client that cannot do that is judged elsewhere."""
        await self.run("rehearsal", check=self.prepares, **more)

    async def rehearse_opening(self, **options: Any) -> None:
        """The same where only the opening of a connection is tried; `options` as in `begin_opening`."""
        opened = await (await self.begin_opening("rehearsal", **options))
        self.expect.prepared(opened, "opening a connection without a fault")
        self.expect.prepared(await self.client.close("rehearsal"))
        await self.until(lambda: not self.is_open(), 2.0)

    async def play_phase(self, phase: str, queue: str, session: str, timeout: float) -> Result:
        """The op of a phase that has no step of the base script, for a frame that is cut in its middle."""
        raise NotImplementedError(f"nothing is known of the phase {phase}")

    # parts of scripts

    def prepares(self, result: Result, criterion: str, /, *, id: str) -> Any:
        """A `Check` of steps that only prepare, which are no criteria: see `Expect.prepared`."""
        return self.expect.prepared(result)

    def bodies(self, count: int, tag: str) -> list[bytes]:
        """Messages of 16 bytes that say where they belong."""
        return [f"{tag[:10]:_<10}{number:06}".encode() for number in range(count)]

    def deadline_s(self, op: Op, timeout: float) -> float:
        """The deadline of an op: the library's own, else `timeout`."""
        return self.client.deadline_s("publish" if op.publishes else "request", timeout)

    def earliest_s(self, op: Op, timeout: float) -> float:
        """Before when it may not end for want of an answer: see `Client.earliest_s`."""
        return self.client.earliest_s("publish" if op.publishes else "request", timeout)

    def waiting(self, timeout: float) -> dict[str, Any]:
        """Options of ``connect`` with which ops may take that long, where the op itself cannot say so."""
        return {}

    def demand(
        self, condition: object, criterion: str, actual: object, check: Check | None, *, id: str
    ) -> None:
        """Demand that the condition holds, as a step that only prepares where `check` is for those."""
        if check == self.prepares and not condition:
            raise SetupFailed(criterion, str(actual), id=id)
        self.expect.that(condition, criterion, actual, id=id)

    async def hears(self, sub: str = "c1") -> int:
        """The first messages come, as a step that only prepares; returns how many there are.

        Without it a client that never delivers anything would fail for what is done to the next ones.
        """
        there = await self.wait_messages(1, sub)
        self.demand(there, "a message is delivered", "none came", self.prepares, id="a-message-is-surfaced")
        return len(there)

    async def ready(self, session: str = "s1", queue: str | None = None, **options: Any) -> None:
        """Prepare: connected, and one message published, so that all connections are open."""
        name = queue or self.queue
        self.add_queue(name)
        await self.connected(session, name, **options)
        if self.publishes:
            first = f"the first message of {session}".encode()
            self.expect.prepared(await self.begin_publish(name, first, session=session))
            there = self.copies(first, name)
            self.expect.exercised(
                there,
                "the broker does not have the first message, though it was acked",
                id="the-broker-does-not-have-the-first-message-though-it-was",
            )

    async def works_again(
        self, criterion: str, *, within_s: float, session: str = "s1", queue: str | None = None, id: str
    ) -> float:
        """Publish again and again until one is acked; demand that for `criterion`. Returns the seconds."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        number = 0
        last = ""
        while loop.time() - begun < within_s and self.client.alive:
            number += 1
            body = f"try {number} of {session} at {self.broker.journal.last_seq}".encode()
            result = await self.begin_publish(queue or self.queue, body, session=session, timeout=2.0)
            if result.ok:
                here = self.copies(body, queue)
                self.expect.equal(
                    here,
                    1,
                    f"{criterion}: what is acked is at the broker once",
                    id=slug("{}-what-is-acked-is-at-the-broker-once", id),
                )
                return loop.time() - begun
            last = str(result)
            await asyncio.sleep(0.2)
        self.expect.that(
            False, criterion, f"not within {within_s:.0f} s; the last of {number} tries: {last}", id=id
        )
        raise AssertionError

    def troubles(self, since: int, session: str | None = None) -> list[Event]:
        """Events that report errors and losses."""
        return [
            event
            for event in self.client.events[since:]
            if (event.event == "error" or (event.event == "session" and event["what"] in self.losses))
            and session in (None, event.fields.get("session"))
        ]

    def reported_of_the_end(self, since: int) -> list[Event]:
        """Events that report that a subscription is over for good."""
        return [
            event
            for event in self.client.events[since:]
            if event.event == "error" or (event.event == "session" and event["what"] in ENDS)
        ]

    async def until(self, condition: Callable[[], object], within_s: float) -> bool:
        """Wait for something that no event reports; returns whether it came."""
        return await until(condition, within_s)
