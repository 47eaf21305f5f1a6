"""NATS: requests, which the fake answers, and subscriptions.

A server keeps no messages. So a queue is a list of texts that the fake keeps: a publish is a request that
adds one and is answered with it, and consuming is listening to the subject of that name, where the fake then
publishes each text once. Answers have headers, so faults tell them from deliveries.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, cast

import msgspec

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import Message, body_bytes, same_body
from conformance.clients.adapter.result import Result
from conformance.suite.client import Body, as_body
from conformance.suite.expect import slug
from fakebrokers import NATS
from fakebrokers.faults import corrupt, delay, reply, rewrite
from fakebrokers.journal import Record, Tap
from fakebrokers.nats.frames import Sub
from scenarios.subjects.base import Check, Subject
from scenarios.subjects.facts import Op

PUT, ECHO = "put", "echo"  #: what the fake answers to: ``put.QUEUE`` and ``echo``
ANSWERED = {"Kept": "1"}  #: headers of its answers
MIB = 1 << 20
ROLES = ("consumer", "requester")


class NatsSubject(Subject):
    """Requests are what is acked."""

    protocol = "nats"
    roles: ClassVar = {"publisher": "requester", "consumer": "consumer"}
    rows: ClassVar = {
        "": {"ops": ("nats.request",)},
        "NET-1.07": {"needs": ("keepalive",)},
        "NET-1.16": {"needs": ("keepalive",)},
    }
    phases: ClassVar = {
        "INFO": ("connect", "Info"),
        "PONG": ("connect", "Pong"),
        "answer": ("publish", "Hmsg"),
        "delivery": ("consume", "Msg"),
    }
    publishing = "Pub"
    confirm = "Hmsg"
    delivery = "Msg"
    close_frame = close_answer = ""
    maintenance_code = 0  # there is none
    largest = MIB
    beyond = MIB + 1
    messages_wait = False
    retries_steadily = True  # a fixed pause is what its clients document

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._texts: defaultdict[str, list[bytes]] = defaultdict(list)
        self._sent: defaultdict[str, int] = defaultdict(int)
        self._queues: dict[str, str] = {}  #: by the name of a subscription
        self._reports: list[asyncio.Future[None]] = []
        self._answered_at = ""
        if not any(subject == ECHO for subject, _ in self.fake.subscriptions):
            self.fake.respond(ECHO, lambda _, payload: payload, headers=ANSWERED)
            self.fake.respond(f"{PUT}.>", self._put, headers=ANSWERED)

    @property
    def fake(self) -> NATS:
        return cast(NATS, self.broker)

    # the fake's side

    def _put(self, subject: str, payload: bytes) -> bytes:
        self.put(subject.removeprefix(f"{PUT}."), [payload])
        return payload[:100]

    def _report(self, queue: str) -> None:
        """Publish what has not been published yet, if anybody listens."""
        texts = self._texts[queue]
        while self._sent[queue] < len(texts) and self.fake.publish(queue, texts[self._sent[queue]]):
            self._sent[queue] += 1

    def add_queue(self, name: str) -> None:
        """Do nothing: a subject need not be made."""

    def stored(self, name: str) -> list[bytes]:
        return list(self._texts[name])

    def put(self, name: str, bodies: Sequence[bytes]) -> None:
        self._texts[name] += bodies
        self._report(name)

    def established(self, since: int) -> bool:
        return bool(self.broker.journal.select(kind="Connect", tap=Tap.HEARD, since=since))

    def subscriptions(self, since: int) -> list[Record]:
        """Those of the application; answers have another one."""
        found = self.broker.journal.select(kind="Sub", tap=Tap.HEARD, since=since)
        return [one for one in found if isinstance(one.frame, Sub) and one.frame.subject in self._texts]

    def ask_to_close(self, connection: str, code: int, reason: str) -> None:
        raise NotImplementedError("NATS has no frame that closes")

    def refuse_publishes(self) -> None:
        self.broker.faults.add(reply(503, role="publish", nth=1, scope="run"))

    def malformed(self) -> bytes:
        return b"MSG nonsense\r\n"

    def bad_delivery(self) -> None:
        raise NotImplementedError("NATS has no checksums")

    def unknown_fields(self) -> Mapping[str, tuple[str, str]]:
        """INFO says more, and messages have headers."""
        more = {"options.future": {"n": [1, None]}, "options.jetstream": True, "options.xkey": "X"}
        self.broker.faults.add(rewrite(more, kind="Info", name="Info"))
        headers = b"NATS/1.0\r\nKept: 1\r\nFuture: a: b\r\nempty:\r\n\r\n"
        self.broker.faults.add(rewrite({"headers": headers}, kind="Hmsg", name="Hmsg"))
        return {
            kind: (f"no {kind} was delivered", slug("no-{}-was-delivered", kind)) for kind in ("Info", "Hmsg")
        }

    def wrong_bytes(self, runs: int) -> None:
        dice = Random(self.broker.faults.plan.seed)
        first = len(self.accepted()) + 1
        for number in range(first, first + runs):
            nth = dice.randint(1, 8)
            name = f"seed {number}, frame {nth}"
            self.faults.add(corrupt(connection=f"c{number}", direction="out", nth=nth, name=name))

    def answer_nobody(self, count: int) -> None:
        """To the subject where the client listens to answers, or one beside the last of them."""
        if not self._answered_at:
            replies = [getattr(one.frame, "reply", "") for one in self.broker.journal.select(kind="Pub")]
            self._answered_at = next(subject for subject in replies if subject).rpartition(".")[0]

        def say() -> None:
            for number in range(count):
                self.fake.publish(f"{self._answered_at}.nobody{number}", b"x" * 900, headers=ANSWERED)

        self.broker.call(say)

    def confirm_later(self) -> None:
        self.broker.faults.add(delay(3.0, kind=self.confirm, direction="out"))

    # the client's side

    @property
    def publishes_in_time(self) -> bool:
        """Each request has a time-out of its own."""
        return True

    def keeping_alive(self, limit_s: float) -> dict[str, Any]:
        """Between half of the limit and the limit two PINGs have no answer."""
        if not self.client.can("keepalive"):
            return {}
        return {"ping_interval_s": limit_s / 2, "max_pings": 1}

    def ops(self, queue: str, tag: str = "") -> list[Op]:
        return [self._request(f"{PUT}.{queue}", {"text": f"pending {tag}"})]

    def _request(self, subject: str, body: Any) -> Op:
        args = {"target": subject, "body": body}
        return Op("request", "nats.request", self.publishing, self.confirm, args)

    def value_made_for(self, number: int) -> tuple[Op, Any]:
        return self._request(ECHO, {"text": f"number {number}"}), b"number %d" % number

    def value_of(self, result: Result) -> Any:
        return body_bytes(result.value["body"])

    def inner_ops(self, queue: str) -> list[tuple[Op, Any]]:
        return [(self._request(f"{PUT}.{queue}", {"text": "inner"}), None)]

    async def heartbeats(self) -> None:
        """Do nothing: a client that is alive answers PINGs, which is NATS-1.01."""

    def begin_publish(
        self,
        queue: str,
        body: Body = b"hello",
        *,
        session: str = "s1",
        timeout: float = 5.0,
        wait: bool = True,
    ) -> Call:
        """Ask the fake to keep a text."""
        return self.begin(self._request(f"{PUT}.{queue}", as_body(body)), timeout, session)

    def outcomes(self, results: Sequence[Result], since: int) -> dict[int, str]:
        return {result.id: result.outcome for result in results}

    def subscribe(
        self, queue: str, sub: str = "c1", session: str = "s1", timeout: float = 5.0, **options: Any
    ) -> Call:
        """Listen to the subject; then the fake publishes what it has kept."""
        return self._reported(super().subscribe(queue, sub, session, timeout, **options), sub, queue)

    def subscribe_and_do(self, queue: str, inner: Sequence[Op]) -> Call:
        return self._reported(super().subscribe_and_do(queue, inner), "c1", queue)

    def _reported(self, call: Call, sub: str, queue: str) -> Call:
        self._queues[sub] = queue
        self._texts[queue] += ()

        async def report() -> None:
            if (await call).ok:
                self._report(queue)

        self._reports.append(asyncio.ensure_future(report()))
        return call

    def messages(self, sub: str = "c1") -> list[Message]:
        """With the number of the text in place of the position, which NATS does not have."""
        texts = self._texts[self._queues[sub]]

        def place(body: Any) -> int | None:
            return next((number for number, text in enumerate(texts) if same_body(body, text)), None)

        return [msgspec.structs.replace(one, position=place(one.body)) for one in super().messages(sub)]

    async def wait_messages(self, count: int, sub: str = "c1", within_s: float = 5.0) -> list[Message]:
        await self.client.wait_messages(count, sub, within_s)
        return self.messages(sub)

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
        """Requests, each with its own answer; then messages."""
        calls = (self.begin_publish(queue, body, session=session, timeout=timeout) for body in wanted)
        for body, call in zip(wanted, list(calls) if at_once else calls, strict=True):
            result = check(await call, "each request is answered", id="each-request-is-answered")
            same = not result or body_bytes(result["body"]) == body
            self.demand(
                same,
                f"{prefix}each request gets its own answer",
                result,
                check,
                id=slug("{}each-request-gets-its-own-answer", prefix),
            )
        await self.consume(queue, wanted, session=session, check=check, timeout=timeout, prefix=prefix)


SUBJECT = NatsSubject
