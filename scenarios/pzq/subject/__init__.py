"""PZQ: a producer's, a consumer's and a monitoring client's sockets, and one queue for all.

A connect reaches no server and always works: libzmq connects in the background, and again after a loss.
There is one queue, under any name, and its messages go to any consumer: so one session at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, cast

import fakebrokers
from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import Message, same_body
from conformance.suite.expect import slug
from fakebrokers.core.frames import Role
from fakebrokers.faults import fault, latency
from fakebrokers.journal import Record, Tap
from fakebrokers.pzq.faults import CorruptPart, ExtraHeaders, WithoutDelimiter, refuse_message
from fakebrokers.pzq.frames import Delivery, Produce, ProduceAck
from fakebrokers.server import FakeServer
from scenarios.pzq._steps import ROOMY, parts_are, produced
from scenarios.subjects.base import Check, Subject
from scenarios.subjects.facts import Op

#: The fake keeps bodies in its journal, so that `PzqSubject.stored` knows what consumers took.
SETTINGS: dict[str, Any] = {"body_limit": 1 << 20}
#: The same behind a byte proxy, where the faults of the byte stream act.
PROXIED: dict[str, Any] = {**SETTINGS, "proxied": True}
#: The same for a run of many thousand messages.
LONG: dict[str, Any] = {**PROXIED, "journal_limit": 500_000}


class PzqSubject(Subject):
    """Producers get an acknowledgement for each message, consumers give one for each delivery."""

    protocol = "pzq"
    rows: ClassVar = {
        "": {"server": PROXIED, "sockets": False},
        "NET-1": {"sockets": None},  # where bytes are cut, and when they come, counts
        "NET-1.08": {"server": {**PROXIED, **ROOMY}},
        "NET-3.01": {"server": SETTINGS},
        "NET-3.02": {"server": SETTINGS},
        "NET-3.05": {"server": {**SETTINGS, **ROOMY}, "roles": ("publisher",)},
        "NET-3.06": {"server": SETTINGS},
        "NET-3.07": {"server": SETTINGS},
        "NET-4.06": {"server": LONG},
    }
    phases: ClassVar = {}  # NET-1.05 and 1.06 have scripts of their own
    publishing = "Produce"
    confirm = "ProduceAck"
    delivery = "Delivery"
    close_frame = close_answer = ""
    in_flight = 5
    width = 1
    ways = 2
    slow_s = 5.0
    large = 16 * 1024  # the ack timeout of 5 s runs from the sending
    connects_later = True
    linger_s = 2.0
    retries_steadily = True  # libzmq does, at random intervals from 0.1 s
    attempts_in_15_s = 300
    finds_losses = False

    @property
    def fake(self) -> fakebrokers.PZQ:
        return cast(fakebrokers.PZQ, self.broker)

    # the fake's side

    @property
    def wire(self) -> FakeServer:
        return self.fake.proxy or self.fake

    def add_queue(self, name: str) -> None:
        """Do nothing: the fake has just one queue."""

    def stored(self, name: str) -> list[bytes]:
        """All that was produced and acknowledged, in the order of arrival, also what consumers took."""
        journal = self.broker.journal
        acked = {key for record in journal.select(kind="ProduceAck", tap=Tap.SAID) for key in record.keys}
        frames = [record.frame for record in journal.select(kind="Produce", tap=Tap.HEARD)]
        return [b"".join(f.body or ()) for f in frames if isinstance(f, Produce) and f.id in acked]

    def copies(self, body: bytes, name: str | None = None) -> int:
        """Those that came under an id of their own: what is sent again under its id is stored again."""
        return len({frame.id for frame in produced(self.fake) if frame.body == (body,)})

    def put(self, name: str, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            self.fake.publish(body)

    def established(self, since: int) -> bool:
        """Whether the first message came over a new connection."""
        return bool(self.broker.journal.select(kind="accepted", tap=Tap.STATE, since=since))

    def subscriptions(self, since: int) -> list[Record]:
        """The consumers' connections; nothing is granted. `since`: a record of `wire`."""
        if self.fake.proxy is None:
            found = self.broker.journal.select(kind="accepted", since=since)
            return [record for record in found if record.note.startswith("ROUTER")]
        found = self.wire.journal.select(kind="upstream", since=since)
        return [record for record in found if record.note == "send"]

    def only_handed_over(self, since: int) -> bool:
        """libzmq keeps what was sent until it has left, for ever unless ZMQ_LINGER says otherwise."""
        if self.is_open() or not (attempts := self.accepted(since)):
            return False
        begun = attempts[0] + self.wire.journal.started_at - self.broker.journal.started_at
        came = [r for r in self.broker.journal.select(kind="Produce", tap=Tap.RECEIVED) if r.at >= begun]
        others = self.subscriptions(since) or (self.fake.proxy and self.connections("monitor", since))
        return bool(came) and not others

    def connections(self, role: str, since: int = 0) -> list[str]:
        """Names of the connections to one of the sockets (``receive``, ``send``, ``monitor``), old ones
        first; behind a proxy only. `since`: a record of `wire`.
        """
        found = self.wire.journal.select(kind="upstream", since=since)
        return [record.connection for record in found if record.note == role]

    def next_publish(self) -> dict[str, Any]:
        if self.fake.proxy is None:
            return super().next_publish()
        return {"kind": "ClientBytes", "connection": self.connections("receive")[-1]}

    def ask_to_close(self, connection: str, code: int, reason: str) -> None:
        raise NotImplementedError("PZQ has no frame that closes")

    def refuse_publishes(self) -> None:
        self.broker.faults.add(refuse_message(nth=1, scope="run"))

    def malformed(self) -> bytes:
        return b"an answer without a status"

    def confirm_later(self) -> None:
        self.broker.faults.add(latency(1.0, kind=self.confirm, direction="out"))

    def answer_nobody(self, count: int) -> None:
        [*_, producer] = [one["name"] for one in self.broker.connections if one["socket"] == "receive"]
        answers = [ProduceAck(b"nobody's %d" % number, texts=(bytes(1000),)) for number in range(count)]
        self.broker.say(producer, *answers)

    def bad_delivery(self) -> None:
        self.broker.faults.add(fault(WithoutDelimiter(), kind="Delivery", nth=1, scope="run"))

    def unknown_fields(self) -> Mapping[str, tuple[str, str]]:
        roles = (Role.CONFIRM, Role.DELIVER)
        for role in roles:
            self.broker.faults.add(fault(ExtraHeaders(headers=("future", "1")), role=role, name=role))
        return {
            role: (f"nothing came with more parts: {role}", slug("nothing-came-with-more-parts-{}", role))
            for role in roles
        }

    def wrong_bytes(self, runs: int) -> None:
        """In a run the fake says 3 answers and 3 deliveries; the places are in the first half of all."""
        dice = Random(self.broker.faults.plan.seed)
        for number, saying in enumerate(dice.sample(range(1, 3 * runs), runs)):
            name = f"seed {number}, message {saying}"
            wrong = fault(CorruptPart(), direction="out", nth=saying, scope="run", name=name)
            self.broker.faults.add(wrong)

    # the client's side

    def ops(self, queue: str, tag: str = "") -> list[Op]:
        timed = self.client.can("ack_timeout")
        body = {"text": f"pending {tag}"}
        known = [
            Op("publish", "publish", "Produce", "ProduceAck", {"target": queue, "body": body}, timed),
            Op("monitor", "pzq.monitor", "MonitorRequest", "MonitorReply", {}),
        ]
        return [op for op in known if self.client.has(op.op)]

    def value_made_for(self, number: int) -> tuple[Op, Any] | None:
        return None  # the monitor gives all clients the same answer

    async def heartbeats(self) -> None:
        """Do nothing: the protocol has no heartbeats."""

    def subscribe(
        self, queue: str, sub: str = "c1", session: str = "s1", timeout: float = 5.0, **options: Any
    ) -> Call:
        """Start to consume, and acknowledge all messages."""
        on_message: Mapping[str, Any] = {"mode": "event", "auto_settle": "ack"}
        return self.client.begin(
            "subscribe",
            timeout,
            session=session,
            sub=sub,
            target=queue,
            options=options,
            on_message=on_message,
        )

    async def run(self, session: str = "s1", **more: Any) -> None:
        """The base script; behind a proxy it is also demanded that no socket reconnects.

        Returns when the fake has seen the session's end, so that the next one's messages are not sent to it.
        """
        before = set(self.is_open())
        mark = self.wire.journal.last_seq
        await super().run(session, **more)
        if self.fake.proxy is not None:
            roles = [record.note for record in self.wire.journal.select(kind="upstream", since=mark)]
            case = f"{more['case']}: " if more.get("case") else ""
            once = len(set(roles)) == len(roles)
            self.demand(
                once,
                f"{case}no reconnect",
                f"connections to {roles}",
                more.get("check"),
                id=slug("{}no-reconnect", case),
            )
            await self.until(lambda: before.issuperset(self.is_open()), 2.0)

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
        """Consume these messages, in any order, and demand that all are acknowledged."""
        sub = f"{session}-sub"
        check(await self.subscribe(queue, sub, session, timeout), "subscribe works", id="subscribe-works")

        def copies() -> list[int]:
            return [sum(same_body(m.body, body) for m in self.client.messages(sub)) for body in wanted]

        await self.until(lambda: all(copies()), timeout)
        got = self.client.messages(sub)
        once = set(copies()) == {1} and not self.made_up(sub)
        seen = f"copies {copies()}; came: {[message.body for message in got][:5]}"
        self.demand(
            once,
            f"{prefix}the messages are delivered once and intact",
            seen,
            check,
            id=slug("{}the-messages-are-surfaced-once-and-intact", prefix),
        )
        acked = await self.until(lambda: not self._waiting(wanted), timeout)
        self.demand(
            acked,
            f"{prefix}the broker gets each acknowledgement",
            "not all came",
            check,
            id=slug("{}the-broker-gets-each-acknowledgement", prefix),
        )
        return got

    def made_up(self, sub: str = "c1") -> list[Any]:
        """The bodies that a consumer has delivered and the broker never sent."""
        frames = [record.frame for record in self.broker.journal.select(kind="Delivery", tap=Tap.SAID)]
        sent = [frame.body or () for frame in frames if isinstance(frame, Delivery)]
        got = self.client.messages(sub)
        return [m.body for m in got if not any(parts_are(m, body) for body in sent)]

    def _waiting(self, bodies: Sequence[bytes]) -> list[bytes]:
        """Those of the bodies that are still stored."""
        return [body for stored in self.fake.messages() if (body := b"".join(stored.body)) in bodies]


SUBJECT = PzqSubject
