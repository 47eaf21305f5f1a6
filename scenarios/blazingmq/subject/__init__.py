"""BlazingMQ: one connection for everything; queues are opened before they are used.

A queue is opened for both ways at once, as a handle of a URI is one. Until a script subscribes, its consumer
takes nothing (a limit of 0: docs/protocols/blazingmq.md, 9); subscribing configures it anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, cast

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import Message
from conformance.clients.adapter.result import Result
from conformance.suite.client import Body
from conformance.suite.expect import slug
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codec import BlazingCodec, event_bytes
from fakebrokers.blazingmq.codes import AckStatus, EventType
from fakebrokers.blazingmq.faults import refuse_put
from fakebrokers.blazingmq.faults_control import ExtraElement
from fakebrokers.blazingmq.frames import (
    ConfigureQueueStreamResponse,
    ConfigureStreamResponse,
    HeartbeatRequest,
    OpenQueue,
    OpenQueueResponse,
    Put,
)
from fakebrokers.blazingmq.schema import HandleParameters, OpenQueueRequest, RoutingConfiguration
from fakebrokers.faults import corrupt, delay, fault
from fakebrokers.journal import Record, Tap
from scenarios._common import limit_s
from scenarios.subjects.base import Check, Subject
from scenarios.subjects.facts import Op

DOMAIN = "bmq://bmq.test.mem.priority/"
MIB = 1 << 20
#: The fake keeps bodies in its journal, so that `BlazingSubject.stored` knows what consumers took.
SETTINGS: dict[str, Any] = {"body_limit": 2 * MIB}
#: The same for a run of many thousand messages.
LONG: dict[str, Any] = {**SETTINGS, "journal_limit": 500_000}
TAKES_NOTHING = {"max_unconfirmed_messages": 0}
TAKES_ALL = {"max_unconfirmed_messages": 100_000, "max_unconfirmed_bytes": 256 * MIB}
CONFIGURED = ("configureStreamResponse", "configureQueueStreamResponse")
BEATS = 3


class BlazingSubject(Subject):
    """Deliveries are confirmed by GUID."""

    protocol = "blazingmq"
    rows: ClassVar = {
        "": {"server": SETTINGS, "ops": ("bmq.configure_queue",)},
        "NET-4.05": {"needs": ("properties",)},
        "NET-4.06": {"server": LONG},
    }
    phases: ClassVar = {
        "handshake answer": ("connect", "brokerResponse"),
        "confirm": ("publish", "ACK"),
        "delivery": ("consume", "PUSH"),
        "close answer": ("close", "disconnectResponse"),
    }
    publishing = "PUT"
    confirm = "ACK"
    delivery = "PUSH"
    close_frame = "disconnect"
    close_answer = "disconnectResponse"
    maintenance_code = 0  # there is none
    connect_retries = True
    largest = MIB

    @property
    def fake(self) -> BlazingMQ:
        return cast(BlazingMQ, self.broker)

    @staticmethod
    def liveness(limit_s: float) -> dict[str, Any]:
        """A silent client is given up after four intervals."""
        return {"heartbeat_s": int(limit_s * 1000) // 4 / 1000, "max_missed": 3}

    # the fake's side

    def add_queue(self, name: str) -> None:
        self.fake.call(lambda: self.fake.broker.make_queue(DOMAIN + name))

    def stored(self, name: str) -> list[bytes]:
        """All that was published to a queue, in the order of arrival, also what is no longer there."""
        uris: dict[tuple[str, int], str] = {}
        found: dict[Any, bytes] = {}
        for record in self.broker.journal.records():
            frame = record.frame
            if not record.tap & Tap.HEARD:
                continue
            if isinstance(frame, OpenQueue):
                asked = frame.handle_parameters
                uris[record.connection, asked.q_id] = asked.uri
            elif isinstance(frame, Put):
                for number, message in enumerate(frame.messages):
                    if uris.get((record.connection, message.queue_id)) == DOMAIN + name:
                        own = any(message.guid[4:])  # a GUID of the client: sent again, it is the same
                        found.setdefault(message.guid if own else (record.seq, number), message.data)
        return list(found.values())

    def put(self, name: str, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            self.fake.publish(DOMAIN + name, body)

    def established(self, since: int) -> bool:
        return bool(self.broker.journal.select(kind="brokerResponse", tap=Tap.SENT, since=since))

    def subscriptions(self, since: int) -> list[Record]:
        sent = self.broker.journal.select(tap=Tap.SENT, since=since)
        return [record for record in sent if record.kind in CONFIGURED and _takes(record.frame)]

    def ask_to_close(self, connection: str, code: int, reason: str) -> None:
        raise NotImplementedError("brokers of BlazingMQ have no close frame")

    def settled(self, since: int) -> list[Record]:
        return self.broker.journal.select(kind="CONFIRM", tap=Tap.RECEIVED, since=since)

    def refuse_publishes(self) -> None:
        self.broker.faults.add(refuse_put(AckStatus.LIMIT_MESSAGES, nth=1, scope="run"))

    def malformed(self) -> bytes:
        return event_bytes(EventType.ACK, [bytes(8)])  # a header of no words

    def bad_delivery(self) -> None:
        self.broker.faults.add(corrupt(kind="PUSH", direction="out", nth=1, scope="run"))

    def unknown_fields(self) -> Mapping[str, tuple[str, str]]:
        names = ("openQueueResponse", *CONFIGURED)
        for kind in names:
            self.broker.faults.add(fault(ExtraElement(), kind=kind, direction="out", name=kind))
        self.expect.may_not_fire("configure*", "a client configures its readers in one of two ways")
        return {"openQueueResponse": ("no queue was opened", "no-queue-was-opened")}

    def wrong_bytes(self, runs: int) -> None:
        dice = Random(self.broker.faults.plan.seed)
        first = len(self.accepted()) + 1
        for number in range(first, first + runs):
            nth = dice.randint(1, 10)
            name = f"seed {number}, frame {nth}"
            self.faults.add(corrupt(connection=f"c{number}", direction="out", nth=nth, name=name))

    def answer_nobody(self, count: int) -> None:
        session: Any = self.fake.connection(self.is_open()[-1]).session
        codec = BlazingCodec(session.codec.encoding)
        handle = HandleParameters(DOMAIN + "x" * 900, 77, flags=4, write_count=1)
        answers = [
            OpenQueueResponse(0x70000000 + number, OpenQueueRequest(handle), RoutingConfiguration(2))
            for number in range(count)
        ]
        self.broker.say_raw(self.is_open()[-1], b"".join([codec.encode(each) for each in answers]))

    def confirm_later(self) -> None:
        self.broker.faults.add(delay(0.5, kind="ACK", direction="out"))

    # the client's side

    def ops(self, queue: str, tag: str = "") -> list[Op]:
        timed = self.client.can("ack_timeout")
        posting = {"target": queue, "body": {"text": f"pending {tag}"}}
        fresh = f"{queue}-new{tag}"
        opening = {"target": fresh, "uri": DOMAIN + fresh, "flags": ["write"], "options": {}}
        return [
            Op("publish", "publish", self.publishing, self.confirm, posting, timed),
            Op("openQueue", "bmq.open_queue", "openQueue", "openQueueResponse", opening),
        ]

    def value_made_for(self, number: int) -> tuple[Op, Any] | None:
        return None

    async def heartbeats(self) -> None:
        """Clients owe an answer to each request of the broker."""
        interval = self.fake.switches.heartbeat_s
        for _ in range(BEATS):
            for name in self.is_open():
                mark = self.broker.journal.last_seq
                self.broker.say(name, HeartbeatRequest())
                await self.expect.wire(
                    self.broker,
                    f"{name}: a HEARTBEAT_REQ is answered",
                    within_s=limit_s(min(interval, 1.0)),
                    kind="HEARTBEAT_RSP",
                    connection=name,
                    since=mark,
                    id=slug("{}-a-heartbeat-req-is-answered", name),
                )
            await asyncio.sleep(min(interval, 1.0))

    async def open(self, queue: str, session: str, check: Check, timeout: float) -> None:
        ways = {"read": "consumer", "write": "publisher"}
        flags = [way for way, role in ways.items() if self.client.has_role(role)]
        more: dict[str, Any] = {"uri": DOMAIN + queue, "flags": flags, "options": TAKES_NOTHING}
        opened = await self.client.op("bmq.open_queue", timeout, session=session, target=queue, **more)
        check(opened, "open works", id="open-works")

    def begin_publish(
        self,
        queue: str,
        body: Body = b"hello",
        *,
        session: str = "s1",
        timeout: float = 5.0,
        wait: bool = True,
    ) -> Call:
        """A post that does not wait asks for no ACK: so all of them wait."""
        return super().begin_publish(queue, body, session=session, timeout=timeout)

    def outcomes(self, results: Sequence[Result], since: int) -> dict[int, str]:
        return {result.id: result.outcome for result in results}

    async def reported_outcome(self, result: Result, since: int) -> bool:
        return result.outcome == "acked"

    def subscribe(
        self, queue: str, sub: str = "c1", session: str = "s1", timeout: float = 5.0, **options: Any
    ) -> Call:
        return self._attached(queue, sub, session, {"mode": "event"}, timeout, options)

    def subscribe_and_settle(self, queue: str) -> Call:
        return self._attached(queue, "c1", "s1", {"mode": "event", "auto_settle": "ack"}, 5.0, {})

    def subscribe_and_do(self, queue: str, inner: Sequence[Op]) -> Call:
        """The callbacks confirm, too, in an op after the others."""
        ops = [{"op": op.op, "args": {"session": "s1", **op.args}, "timeout_ms": 5000} for op in inner]
        return self._attached(queue, "c1", "s1", {"mode": "event", "auto_settle": "ack", "do": ops}, 5.0, {})

    def _attached(
        self, queue: str, sub: str, session: str, on_message: Mapping[str, Any], timeout: float, options: Any
    ) -> Call:
        """Attach the callback, and let the consumer take messages; the second is what may fail."""
        self.client.begin(
            "subscribe", timeout, session=session, sub=sub, target=queue, options={}, on_message=on_message
        )
        limits: dict[str, Any] = {"options": {**TAKES_ALL, **options}}
        return self.client.begin("bmq.configure_queue", timeout, session=session, target=queue, **limits)

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
        """Consume them, and confirm each."""
        got = await super().consume(
            queue, wanted, session=session, check=check, timeout=timeout, prefix=prefix
        )
        for message in got:
            settled = await self.client.op("settle", sub=f"{queue}-sub", ref=message.ref, how="ack")
            check(settled, "settle works", id="settle-works")
        done = await self.until(lambda: not self.fake.messages(DOMAIN + queue), timeout)
        self.demand(
            done,
            f"{prefix}the broker gets each confirm",
            "not all came",
            check,
            id=slug("{}the-broker-gets-each-confirm", prefix),
        )
        return got


def _takes(frame: Any) -> bool:
    """Whether an answer grants a consumer that takes messages."""
    if isinstance(frame, ConfigureQueueStreamResponse):
        return frame.request.stream_parameters.max_unconfirmed_messages > 0
    if isinstance(frame, ConfigureStreamResponse):
        found = frame.request.stream_parameters.subscriptions
        return any(each.max_unconfirmed_messages > 0 for one in found for each in one.consumers)
    return False


SUBJECT = BlazingSubject
