"""What a scenario for all protocols may do: the base script, its steps, and waiting for the client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from conformance.adapter.base import Call
from conformance.adapter.messages import Event, Message, same_body
from conformance.adapter.result import Result
from conformance.suite.expect import SetupFailed
from scenarios.net._scripts.facts import Op, ProtocolFacts

LOSSES = ("connection_lost", "reconnecting", "reconnected", "disconnected", "target_closed")
ENDS = ("target_closed", "disconnected")
Check = Callable[[Result, str], Any]

__all__ = ["Check", "Op", "Script"]


class Script(ProtocolFacts):
    """The base script "connect, open, publish 3 with confirm, consume 3 with ack, close", and its parts."""

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
        turns: int = 1,
    ) -> None:
        """The base script on a queue of its own; every step is demanded to go as without a fault.

        Args:
            check: Judges each result; default: a criterion of the requirement.
            at_once: All publishes in flight together.
            case: What the steps are called in criteria, besides their name.
            turns: How often between connect and close, each time on another queue.
        """
        good = check or (lambda result, step: self.expect.ok(result, f"{prefix}{step}"))
        prefix = f"{case}: " if case else ""
        wanted = list(bodies or self.bodies(count, session))
        mark = len(self.client.events)
        good(await self.client.begin_connect(session, timeout=timeout), "connect works")
        for turn in range(turns):
            queue = f"{self.queue}-{session}" + (f"-{turn}" if turn else "")
            self.add_queue(queue)
            calls = (self._publish(queue, body, session, timeout) for body in wanted)
            for number, call in enumerate(list(calls) if at_once else calls, 1):
                good(await call, f"publish {number} is acked")
            await self.consume(queue, wanted, session=session, check=good, timeout=timeout, prefix=prefix)
            await self.other_ways(queue, session, check=good, timeout=timeout, prefix=prefix)
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
        sub = f"{queue}-sub"
        check(await self.subscribe(queue, sub, session, timeout), "subscribe works")
        got = await self.client.wait_messages(len(wanted), sub, timeout)
        same = len(got) == len(wanted) and all(
            same_body(message.body, body) for message, body in zip(got, wanted, strict=True)
        )
        seen = f"{len(got)} of {len(wanted)} came: {[message.body for message in got][:5]}"
        self.demand(same, f"{prefix}the messages are surfaced once, in order and intact", seen, check)
        return got

    async def other_ways(
        self, queue: str, session: str, *, check: Check, timeout: float, prefix: str = ""
    ) -> int:
        """Publish and consume one message in each further way that the protocol has; how many these are."""
        return 0

    def demand(self, condition: object, criterion: str, actual: object, check: Check | None) -> None:
        """Demand that the condition holds, as a step that only prepares where `check` is for those."""
        if check == self.expect.prepared and not condition:
            raise SetupFailed(criterion, str(actual))
        self.expect.that(condition, criterion, actual)

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
        """The same, and acknowledge whatever comes where that is left to the application."""
        return self.subscribe(queue)

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
            first = f"the first message of {session}".encode()
            self.expect.prepared(await self._publish(name, first, session, 5.0))
            there = self.copies(first, name)
            self.expect.exercised(there, "the broker does not have the first message, though it was acked")

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
        while loop.time() - begun < within_s and self.client.alive:
            number += 1
            body = f"try {number} of {session} at {self.broker.journal.last_seq}".encode()
            result = await self._publish(queue or self.queue, body, session, 2.0)
            if result.ok:
                here = self.copies(body, queue)
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
