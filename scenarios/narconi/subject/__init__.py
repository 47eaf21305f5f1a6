"""Narconi: WebSockets for publishing and consuming, and its HTTP API beside them.

A connect reaches no server: the first publish opens the publishing WebSocket of a queue, each subscribe a
WebSocket of its own, and HTTP requests have connections of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, cast

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import Message, body_bytes
from conformance.clients.adapter.result import Result
from conformance.suite.expect import slug
from fakebrokers import Narconi
from fakebrokers.faults import Fault, fault, hold, latency, rewrite, rst
from fakebrokers.faults.effects import Inject
from fakebrokers.journal import Record, Tap
from fakebrokers.narconi.faults import error_instead_of_confirm
from fakebrokers.narconi.forging import CorruptContent, WithHeaders
from fakebrokers.narconi.frames import HttpPublish, WsClose, WsPublish, WsUpgrade
from scenarios.subjects.base import Check, Subject
from scenarios.subjects.facts import Op

PROJECT = "test"  #: where sessions go that name no project

#: The fake keeps bodies in its journal, so that `NarconiSubject.stored` knows what consumers took.
SETTINGS: dict[str, Any] = {"body_limit": 1 << 20}
#: The same for a run of many thousand messages.
LONG: dict[str, Any] = {**SETTINGS, "journal_limit": 500_000}

#: Unknown members.
FUTURE = {"future": {"list": [1, None, "x"]}, "more": True}
#: What the server says that has content, and how often at least in a run of the base script.
SAYINGS = {"WsAccept": 2, "WsDeliver": 1, "WsClose": 1}
SAYINGS_OVER_HTTP = {"HttpConfirm": 1, "HttpDeliver": 1}

#: Unacknowledged messages at a time: more than any script leaves open.
LIMIT = 1000


class NarconiSubject(Subject):
    """Deliveries are acknowledged by ackId; HTTP publishes and takes one message besides."""

    protocol = "narconi"
    rows: ClassVar = {
        "": {"server": SETTINGS},
        "NET-1.05": {"roles": ("publisher", "consumer", "http")},
        "NET-1.06": {"roles": ("publisher", "consumer", "http")},
        "NET-1.07": {"needs": ("keepalive",)},
        "NET-1.16": {"needs": ("keepalive",)},
        "NET-2.08": {"roles": ("publisher",)},
        "NET-3.11": {"roles": ("publisher",)},
        "NET-4.06": {"server": LONG},
    }
    phases: ClassVar = {
        "101": ("open", "WsAccept"),
        "confirm": ("publish", "WsConfirm"),
        "delivery": ("consume", "WsDeliver"),
        "HTTP body": ("other", "HttpDeliver"),
    }
    publishing = "WsPublish"
    confirm = "WsConfirm"
    delivery = "WsDeliver"
    close_frame = "WsClose"
    close_answer = "WsClose"
    maintenance_code = 1000
    width = 2
    ways = 3
    wrong_width = 10
    wrong_s = 5.0
    turns = 8  # each queue has connections of its own
    bulk = 48 * 1024  # a message may have 64 KiB (docs/protocols/narconi.md, "Size")
    largest = 64 * 1024
    beyond = largest + 1

    @property
    def fake(self) -> Narconi:
        return cast(Narconi, self.broker)

    # the fake's side

    def add_queue(self, name: str) -> None:
        self.fake.create_queue(PROJECT, name)

    def stored(self, name: str) -> list[bytes]:
        """All that was published to a queue, in the order of arrival, also what is no longer there."""
        journal = self.broker.journal
        queues = {
            record.connection: record.frame.queue
            for record in journal.select(kind="WsUpgrade")
            if isinstance(record.frame, WsUpgrade)
        }
        found = []
        for record in journal.select(role="publish", tap=Tap.HEARD):
            frame = record.frame
            if isinstance(frame, WsPublish) and queues[record.connection] == name:
                found.append(frame.payload)
            elif isinstance(frame, HttpPublish) and frame.queue == name:
                found.append(frame.body)
        return found

    def put(self, name: str, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            self.fake.publish(PROJECT, name, body)

    def established(self, since: int) -> bool:
        return bool(self.broker.journal.select(kind="WsAccept", tap=Tap.SENT, since=since))

    def subscriptions(self, since: int) -> list[Record]:
        consuming = {record.connection for record in self._upgrades("consume")}
        accepted = self.broker.journal.select(kind="WsAccept", tap=Tap.SENT, since=since)
        return [record for record in accepted if record.connection in consuming]

    def _upgrades(self, protocol: str) -> list[Record]:
        return [
            record
            for record in self.broker.journal.select(kind="WsUpgrade")
            if isinstance(record.frame, WsUpgrade)
            and record.frame.header("sec-websocket-protocol") == protocol
        ]

    def ask_to_close(self, connection: str, code: int, reason: str) -> None:
        self.broker.say(connection, WsClose(code, reason))

    def refuse_publishes(self) -> None:
        self.broker.faults.add(error_instead_of_confirm("Message too large.", 429, nth=1, scope="run"))

    def malformed(self) -> bytes:
        return b"\x83\x00"  # opcode 3 is reserved (RFC 6455, section 5.2)

    def bad_delivery(self) -> None:
        no_metadata = Inject(kind="WsFrame", fields={"opcode": 1, "payload": b"no metadata"}, place="before")
        self.broker.faults.add(fault(no_metadata, kind="WsDeliver", direction="out", nth=1, scope="run"))

    def unknown_fields(self) -> Mapping[str, tuple[str, str]]:
        more = {f"headers.{name}": value for name, value in FUTURE.items()}
        self.broker.faults.add(
            fault(WithHeaders(headers={"X-Future": "1", "Future": "a, b"}), direction="out", name="headers"),
            rewrite(fields=more, kind="WsDeliver", name="metadata"),
        )
        return {
            name: (f"nothing came with more {name}", slug("nothing-came-with-more-{}", name))
            for name in ("headers", "metadata")
        }

    def wrong_bytes(self, runs: int) -> None:
        sayings = {**SAYINGS, **(SAYINGS_OVER_HTTP if self.client.has_role("http") else {})}
        chosen = [(kind, nth) for kind, each in sayings.items() for nth in range(1, each * runs + 1)]
        dice = Random(self.broker.faults.plan.seed)
        for number, (kind, nth) in enumerate(dice.sample(chosen, runs)):
            name = f"seed {number}: {kind} {nth}"
            wrong = fault(CorruptContent(), kind=kind, nth=nth, scope="run", name=name)
            self.broker.faults.add(wrong)

    # the client's side

    def ops(self, queue: str, tag: str = "") -> list[Op]:
        body = {"text": f"pending {tag}"}
        for more in ("more", "old"):
            self.add_queue(f"{queue}-{more}{tag}")
        self.put(f"{queue}-take{tag}", [b"to be taken"])
        known = [
            Op("publish", "publish", "WsPublish", "WsConfirm", {"target": queue, "body": body}),
            Op("subscribe", "subscribe", "WsUpgrade", "WsAccept", _subscribing(f"{queue}-more{tag}")),
            _http("HttpPublish", "post", "HttpConfirm", {"target": queue, "body": body}),
            _http("HttpConsume", "take", "HttpDeliver", {"target": f"{queue}-take{tag}"}),
            _http("EnsureQueue", "ensure_queue", "QueueEnsured", {"target": f"{queue}-new{tag}"}),
            _http("DeleteQueue", "delete_queue", "QueueDeleted", {"target": f"{queue}-old{tag}"}),
        ]
        if self.client.can("lazy_subscribe"):  # it waits for no answer
            known = [op for op in known if op.op != "subscribe"]
        return [op for op in known if self.client.has(op.op)]

    def value_made_for(self, number: int) -> tuple[Op, Any] | None:
        if not self.client.has("narc.take"):
            return None
        body = f"made for {number}".encode()
        name = f"{self.queue}-{number}"
        self.put(name, [body])
        return _http("HttpConsume", "take", "HttpDeliver", {"target": name}), body

    def patient_op(self, queue: str) -> Op | None:
        """A request has a connection of its own; a WebSocket may be given up when a confirm is overdue."""
        return next((op for op in self.ops(queue) if op.op == "narc.post"), None)

    def further_ops(self, queue: str) -> list[Op]:
        return [op for op in self.ops(queue) if op.op in ("narc.post", "narc.take")]

    def losing_confirms(self) -> Fault:
        """A confirm that is missing would put the others into the wrong order: the connection ends too."""
        return rst(kind=self.confirm, direction="out", probability=0.0005, name="lost confirms")

    def confirm_later(self) -> None:
        self.broker.faults.add(latency(0.2, kind=self.confirm, direction="out"))

    def identity(self, message: Message) -> Any:
        """Ack ids begin anew on each connection."""
        return body_bytes(message.body)

    def inner_ops(self, queue: str) -> list[tuple[Op, Any]]:
        publish, *_ = super().inner_ops(queue)
        args = {"target": queue, "body": {"text": "inner"}}
        return [publish, (_http("HttpPublish", "post", "HttpConfirm", args), None)]

    def settled(self, since: int) -> list[Record]:
        return self.broker.journal.select(kind="WsAck", tap=Tap.RECEIVED, since=since)

    async def go_on_refused(self) -> None:
        """The server ends the connection with its refusal; some leave the next one to the application."""
        if not self.client.reconnects("producer"):
            await self.connected()

    def value_of(self, result: Result) -> Any:
        shown = result.value["message"]
        return None if shown is None else body_bytes(shown["body"])

    def withholding(self, spare: Sequence[str] = (), **fault: Any) -> Fault:
        """So does the end of a connection that ends with its answer, and all else on that connection."""
        return hold(behind=True, direction="out", **fault)

    def shuffled(self, kind: str, count: int) -> Fault:
        """Each comes on a connection of its own, late by chance, and before the end of that connection."""
        return latency(0.1, jitter=0.1, kind=kind, direction="out")

    def keeping_alive(self, limit_s: float) -> dict[str, Any]:
        """A ping every half of it, whose pong may take the other half."""
        return {"keepalive_s": limit_s / 2} if self.client.can("keepalive") else {}

    async def heartbeats(self) -> None:
        """Clients of Narconi owe no heartbeats."""

    async def begin_opening(self, session: str = "s1", timeout: float = 5.0, **options: Any) -> Call:
        self.add_queue(self.queue)
        await self.client.connected(session, **options)
        if self.publishes:
            return self.begin_publish(self.queue, b"to open the WebSocket", session=session, timeout=timeout)
        if not self.client.has("subscribe"):  # no WebSockets: a request opens a connection, too
            return self.client.begin("narc.take", timeout, session=session, target=self.queue)
        return self.subscribe(self.queue, f"{session}-opening", session, timeout)

    def opening_s(self, timeout: float) -> float:
        return self.client.deadline_s("publish" if self.publishes else "request", timeout)

    def subscribe(
        self, queue: str, sub: str = "c1", session: str = "s1", timeout: float = 5.0, **options: Any
    ) -> Call:
        return super().subscribe(queue, sub, session, timeout, **{"ack": True, "limit": LIMIT, **options})

    def subscribe_and_settle(self, queue: str) -> Call:
        return self.client.begin(
            "subscribe",
            session="s1",
            sub="c1",
            target=queue,
            options={"ack": True, "limit": LIMIT},
            on_message={"mode": "event", "auto_settle": "ack"},
        )

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
        """Consume them, and acknowledge each."""
        got = await super().consume(
            queue, wanted, session=session, check=check, timeout=timeout, prefix=prefix
        )
        for message in got:
            settled = await self.client.op("settle", sub=f"{queue}-sub", ref=message.ref, how="ack")
            check(settled, "settle works", id="settle-works")
        acked = await self.until(lambda: not self.fake.unacked(PROJECT, queue), timeout)
        self.demand(
            acked,
            f"{prefix}the server gets each acknowledgement",
            "not all came",
            check,
            id=slug("{}the-server-gets-each-acknowledgement", prefix),
        )
        return got

    async def other_ways(
        self, queue: str, session: str, *, check: Check, timeout: float, prefix: str = ""
    ) -> int:
        """There and back over HTTP."""
        if not self.client.has_role("http"):
            return 0
        beside = f"{queue}-http"
        self.add_queue(beside)
        body = f"over HTTP, {session}".encode()
        named: dict[str, Any] = {"session": session, "target": beside}
        check(
            await self.client.op("narc.post", timeout, body={"text": body.decode()}, **named),
            "post works",
            id="post-works",
        )
        taken = await self.client.op("narc.take", timeout, **named)
        check(taken, "take works", id="take-works")
        shown = self.value_of(taken)
        self.demand(
            shown == body,
            f"{prefix}the message comes back over HTTP",
            shown,
            check,
            id=slug("{}the-message-comes-back-over-http", prefix),
        )
        return 1

    async def play_phase(self, phase: str, queue: str, session: str, timeout: float) -> Result:
        """Take a message over HTTP whose body is half of the frame and more."""
        self.put(queue, [bytes(2000)])
        return await self.client.op("narc.take", timeout, session=session, target=queue)


def _subscribing(queue: str) -> Mapping[str, Any]:
    return {"target": queue, "sub": queue, "options": {"ack": True}, "on_message": {"mode": "event"}}


def _http(frame: str, op: str, answer: str, args: Mapping[str, Any]) -> Op:
    return Op(frame, f"narc.{op}", frame, answer, args)


SUBJECT = NarconiSubject
