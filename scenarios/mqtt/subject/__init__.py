"""MQTT: a queue is a topic. What was published before somebody subscribed comes to him all the same: the fake
hands it over after the SUBACK, as a server does for a session that lasts. All of that goes with QoS 1, and in
the further way one message with QoS 2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, ClassVar, cast

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import same_body
from conformance.suite.expect import slug
from fakebrokers import MQTT
from fakebrokers.faults import corrupt, delay, rst
from fakebrokers.journal import Record, Tap
from fakebrokers.mqtt.codec import MqttCodec
from fakebrokers.mqtt.frames import Publish, Suback, Subscribe
from scenarios.subjects.base import Check, Subject
from scenarios.subjects.facts import Op

SETTINGS: dict[str, Any] = {"body_limit": 1 << 21}
LONG: dict[str, Any] = {**SETTINGS, "journal_limit": 500_000}
NOBODY = 0x7777  #: a packet id that nothing has
SAID = 7  #: packets of the server in a run of the base script, about
LONGEST_S = 5.0  #: a longer keep alive is not waited for
PATIENCE = 1.5  #: keep alives after which a server gives a silent client up (3.1.2.10)


class MqttSubject(Subject):
    """A session is clean, and has a client id of its own."""

    protocol = "mqtt"
    rows: ClassVar = {"": {"server": SETTINGS}, "NET-4.06": {"server": LONG}}
    phases: ClassVar = {
        "CONNACK": ("connect", "Connack"),
        "PUBACK": ("publish", "Puback"),
        "delivery": ("consume", "Publish"),
    }
    publishing = "Publish"
    confirm = "Puback"
    delivery = "Publish"
    close_frame = "Disconnect"
    close_answer = ""
    maintenance_code = 0  # there is none
    connect_retries = True
    messages_wait = False
    beyond = 268_435_456  #: what no length field can say (2.2.3)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._read_to = 0
        self._came: list[tuple[int, Publish]] = []
        self._put: list[tuple[int, str, bytes]] = []
        self._handing: set[asyncio.Task[None]] = set()
        self._keep_alive_s = 60.0
        self._twice: dict[str, int] = {}  #: by queue, messages with QoS 2 so far

    @property
    def fake(self) -> MQTT:
        return cast(MQTT, self.broker)

    # the fake's side

    def add_queue(self, name: str) -> None:
        """Do nothing: topics are there."""

    def _heard(self) -> list[tuple[int, Publish]]:
        """All messages of clients, with their places in the journal."""
        for record in self.broker.journal.select(kind="Publish", tap=Tap.HEARD, since=self._read_to):
            self._read_to = record.seq
            if isinstance(record.frame, Publish):
                self._came.append((record.seq, record.frame))
        return self._came

    def _published(self, name: str) -> list[tuple[int, bytes]]:
        """All messages of a topic, with their places in the journal."""
        found = [(at, frame.payload) for at, frame in self._heard() if frame.topic == name]
        put = [(at, body) for at, topic, body in self._put if topic == name]
        return sorted(found + put, key=lambda row: row[0])

    def stored(self, name: str) -> list[bytes]:
        """All that was published there, in the order of arrival."""
        return [body for _, body in self._published(name)]

    def copies(self, body: bytes, name: str | None = None) -> int:
        """Those that came under a packet id of their own: what is sent again has that of the first."""
        return len({frame.packet_id for _, frame in self._heard() if frame.payload == body})

    def put(self, name: str, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            self._put.append((self.broker.journal.last_seq, name, body))
            self.fake.publish(name, body, qos=1)

    def established(self, since: int) -> bool:
        return bool(self.broker.journal.select(kind="Connack", tap=Tap.SENT, since=since))

    def subscriptions(self, since: int) -> list[Record]:
        return self.broker.journal.select(kind="Suback", tap=Tap.SENT, since=since)

    def ask_to_close(self, connection: str, code: int, reason: str) -> None:
        raise NotImplementedError("servers of MQTT 3.1.1 have no close frame")

    def refuse_publishes(self) -> None:
        """No packet refuses a message: servers end the connection."""
        self.broker.faults.add(rst(kind="Publish", direction="in", nth=1, scope="run"))

    def malformed(self) -> bytes:
        return b"\xf0\x00"  # type 15

    def bad_delivery(self) -> None:
        raise NotImplementedError("nothing in a message has to fit its bytes")

    def wrong_bytes(self, runs: int) -> None:
        dice = Random(self.broker.faults.plan.seed)
        first = len(self.accepted()) + 1
        for number in range(first, first + runs):
            nth = dice.randint(1, SAID)
            name = f"seed {number}, frame {nth}"
            self.faults.add(corrupt(connection=f"c{number}", direction="out", nth=nth, name=name))

    def answer_nobody(self, count: int) -> None:
        answer = MqttCodec().encode(Suback(NOBODY, (0,) * 1000))
        self.broker.say_raw(self.is_open()[-1], answer * count)

    def confirm_later(self) -> None:
        self.broker.faults.add(delay(0.5, kind="Puback", direction="out"))

    # the client's side

    def ops(self, queue: str, tag: str = "") -> list[Op]:
        timed = self.client.can("ack_timeout")
        posting = {"target": queue, "body": {"text": f"pending {tag}"}}
        asking = {"sub": f"new{tag}", "target": f"{queue}/new{tag}", "options": {}, "on_message": {}}
        found = [
            Op("publish", "publish", "Publish", "Puback", posting, timed),
            Op("subscribe", "subscribe", "Subscribe", "Suback", asking),
        ]
        return [op for op in found if op.op == "publish" or self.client.has_role("consumer")]

    def value_made_for(self, number: int) -> tuple[Op, Any] | None:
        return None

    def keeping_alive(self, limit_s: float) -> dict[str, Any]:
        """A client asks after one keep alive at most, and has its answer after another one."""
        return {"keep_alive_s": max(1, int(limit_s / 2))}

    async def heartbeats(self) -> None:
        """Whoever says nothing else sends PINGREQ, in time for a server that waits for 1.5 keep alives."""
        if not 0 < self._keep_alive_s <= LONGEST_S:
            return
        most = PATIENCE * self._keep_alive_s + 0.25
        for _ in range(2):
            mark, names = self.broker.journal.last_seq, set(self.is_open())
            await asyncio.sleep(most)
            came = {r.connection for r in self.broker.journal.select(tap=Tap.RECEIVED, since=mark)}
            quiet = [name for name in names if name not in came and name in self.is_open()]
            self.expect.that(not quiet, "heartbeats keep their period", quiet, id="heartbeats")

    def begin_connect(self, session: str = "s1", *, timeout: float = 5.0, **options: Any) -> Call:
        self._keep_alive_s = options.get("keep_alive_s", self._keep_alive_s)
        return super().begin_connect(session, timeout=timeout, **options)

    def subscribe(
        self, queue: str, sub: str = "c1", session: str = "s1", timeout: float = 5.0, **options: Any
    ) -> Call:
        mark = self.broker.journal.last_seq
        call = super().subscribe(queue, sub, session, timeout, **options)
        self._hand_over_later(queue, mark)
        return call

    def subscribe_and_do(self, queue: str, inner: Sequence[Op]) -> Call:
        mark = self.broker.journal.last_seq
        call = super().subscribe_and_do(queue, inner)
        self._hand_over_later(queue, mark)
        return call

    def _hand_over_later(self, queue: str, mark: int) -> None:
        task = asyncio.ensure_future(self._hand_over(queue, mark))
        self._handing.add(task)
        task.add_done_callback(self._handing.discard)

    async def _hand_over(self, queue: str, mark: int) -> None:
        """Once the server has said yes, what was published before comes to this client."""
        if not await self.until(lambda: self._granted(queue, mark), 10.0):
            return
        granted = self._granted(queue, mark)
        assert granted is not None
        earlier = [body for at, body in self._published(queue) if at <= granted.seq]

        def give() -> None:
            connection = self.broker.engine.connections.get(granted.connection)
            session: Any = None if connection is None else connection.session
            if session is not None and session.client is not None:
                for body in earlier:
                    session.client.send(queue, body, 1)

        self.fake.call(give)

    def _granted(self, queue: str, mark: int) -> Record | None:
        """The SUBACK for a topic since that record."""
        journal = self.broker.journal
        asked = [
            record
            for record in journal.select(kind="Subscribe", tap=Tap.HEARD, since=mark)
            if isinstance(record.frame, Subscribe) and record.frame.filters[0][0] == queue
        ]
        for record in journal.select(kind="Suback", tap=Tap.SAID, since=asked[0].seq) if asked else ():
            if record.connection == asked[0].connection and record.keys == asked[0].keys:
                return record
        return None

    async def other_ways(
        self, queue: str, session: str, *, check: Check, timeout: float, prefix: str = ""
    ) -> int:
        """There and back with QoS 2."""
        topic, sub = f"{queue}/twice", f"{queue}-twice"
        count = self._twice[queue] = self._twice.get(queue, 0) + 1
        if count == 1:
            asked = super().subscribe(topic, sub, session, timeout, qos=2)
            check(await asked, "subscribe with QoS 2 works", id="subscribe-with-qos-2-works")
        body = b"twice %06d" % count
        given: dict[str, Any] = {"session": session, "target": topic, "body": {"text": body.decode()}}
        result = await self.client.begin("publish", timeout, qos=2, wait=True, **given)
        check(result, "publish with QoS 2 is acked", id="publish-with-qos-2-is-acked")
        got = await self.wait_messages(count, sub, timeout)
        same = len(got) == count and same_body(got[-1].body, body)
        criterion = "a message with QoS 2 is delivered once"
        what = slug("{}a-message-with-qos-2-is-delivered-once", prefix)
        self.demand(same, f"{prefix}{criterion}", got[-2:], check, id=what)
        return 1


SUBJECT = MqttSubject
