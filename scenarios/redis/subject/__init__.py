"""Redis: clients publish to channels and subscribe to them, and ask commands.

Nothing of a channel waits for a subscriber. What was published before there is one the fake publishes once
more when the script asks for messages.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any, ClassVar, cast

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import Message, body_bytes
from conformance.clients.adapter.result import Result
from fakebrokers import Redis
from fakebrokers.faults import Fault, corrupt, latency, reply, rst
from fakebrokers.journal import Record, Tap
from fakebrokers.redis import frames as f
from scenarios.subjects.base import Subject
from scenarios.subjects.facts import Op

#: The fake keeps bodies in its journal, so that `RedisSubject.stored` knows what was published.
SETTINGS: dict[str, Any] = {"body_limit": 1 << 20}
#: The same for a run of many thousand messages.
LONG: dict[str, Any] = {**SETTINGS, "journal_limit": 500_000}


class RedisSubject(Subject):
    """A publish is confirmed by the number of receivers; GET is the op with a value of its own."""

    protocol = "redis"
    rows: ClassVar = {"": {"server": SETTINGS}, "NET-4.06": {"server": LONG}}
    phases: ClassVar = {
        "handshake": ("connect", "Reply"),
        "confirm": ("publish", "Published"),
        "delivery": ("consume", "Message"),
    }
    publishing = "Publish"
    confirm = "Published"
    delivery = "Message"
    close_frame = close_answer = ""
    ways = 2
    turns = 4
    finds_losses = False
    messages_wait = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._kept: defaultdict[str, list[bytes]] = defaultdict(list)
        self._given: defaultdict[str, list[bytes]] = defaultdict(list)
        self._listened: dict[str, int] = {}  #: since which record of the journal

    @property
    def fake(self) -> Redis:
        return cast(Redis, self.broker)

    # the fake's side

    def add_queue(self, name: str) -> None:
        """Do nothing: any channel is there."""

    def stored(self, name: str) -> list[bytes]:
        return [*self._published(name), *self._given[name]]

    def _published(self, name: str, until: int | None = None) -> list[bytes]:
        """What clients have published to a channel, by that record of the journal."""
        found = self.broker.journal.select(kind="Publish", tap=Tap.HEARD)
        frames = [r.frame for r in found if until is None or r.seq <= until]
        return [frame.payload for frame in frames if isinstance(frame, f.Publish) and frame.channel == name]

    def put(self, name: str, bodies: Sequence[bytes]) -> None:
        """Published by nobody; what has no subscriber waits for `wait_messages`."""
        for body in bodies:
            self._given[name].append(body)
            if not self.fake.publish(name, body):
                self._kept[name].append(body)

    def established(self, since: int) -> bool:
        return bool(self.broker.journal.select(kind="accepted", tap=Tap.STATE, since=since))

    def subscriptions(self, since: int) -> list[Record]:
        found = self.broker.journal.select(kind="Subscribed", tap=Tap.SENT, since=since)
        return [r for r in found if isinstance(r.frame, f.Subscribed) and r.frame.action == "subscribe"]

    def ask_to_close(self, connection: str, code: int, reason: str) -> None:
        raise NotImplementedError("a Redis server says nothing before it ends a connection")

    def refuse_publishes(self) -> None:
        self.broker.faults.add(reply(1, kind="Publish", nth=1, scope="run"))

    def malformed(self) -> bytes:
        return b"?nonsense\r\n"

    def bad_delivery(self) -> None:
        self.broker.faults.add(corrupt(at=0, kind="Message", direction="out", nth=1, scope="run"))

    def wrong_bytes(self, runs: int) -> None:
        """In a run the fake says a greeting, 3 confirms, an answer to SUBSCRIBE and 3 messages."""
        sayings = {"Reply": 1, "Published": 3, "Subscribed": 1, "Message": 3}
        chosen = [(kind, nth) for kind, each in sayings.items() for nth in range(1, each * runs // 2 + 1)]
        dice = Random(self.broker.faults.plan.seed)
        for number, (kind, nth) in enumerate(dice.sample(chosen, runs)):
            name = f"seed {number}: {kind} {nth}"
            wrong = corrupt(kind=kind, direction="out", nth=nth, scope="run", name=name)
            self.broker.faults.add(wrong)

    def confirm_later(self) -> None:
        self.broker.faults.add(latency(0.2, kind=self.confirm, direction="out"))

    def losing_confirms(self) -> Fault:
        """A confirm that is missing would put all answers into the wrong order: the connection ends too."""
        return rst(kind=self.confirm, direction="out", probability=0.0005, name="lost confirms")

    def shuffled(self, kind: str, count: int) -> Fault:
        """Answers keep their order, and come late by chance."""
        return latency(0.1, jitter=0.1, kind=kind, direction="out")

    # the client's side

    def ops(self, queue: str, tag: str = "") -> list[Op]:
        self.fake.store(f"{queue}-key{tag}", "value")
        sub = {"target": f"{queue}-more{tag}", "sub": f"{queue}-more{tag}", "on_message": {"mode": "event"}}
        known = [
            Op(
                "publish",
                "publish",
                "Publish",
                "Published",
                {"target": queue, "body": {"text": f"pending {tag}"}},
                self.client.can("ack_timeout"),
            ),
            _get(f"{queue}-key{tag}"),
            Op("subscribe", "subscribe", "Subscribe", "Subscribed", sub),
        ]
        if self.client.can("lazy_subscribe"):  # it waits for no answer
            known.pop()
        return [op for op in known if self.client.has(op.op)]

    def value_made_for(self, number: int) -> tuple[Op, Any] | None:
        if not self.client.has("redis.call"):
            return None
        key, value = f"{self.queue}-{number}", f"made for {number}".encode()
        self.fake.store(key, value)
        return _get(key), value

    def value_of(self, result: Result) -> Any:
        value = result.value["value"]
        return body_bytes(value) if isinstance(value, dict) else value

    def inner_ops(self, queue: str) -> list[tuple[Op, Any]]:
        publish, *_ = super().inner_ops(queue)
        return [publish]

    def patient_op(self, queue: str) -> Op | None:
        """None: answers have no names, so who gives one up may give the connection up with it."""
        return None

    async def heartbeats(self) -> None:
        """There are none."""

    def identity(self, message: Message) -> Any:
        return body_bytes(message.body)

    def subscribe(
        self, queue: str, sub: str = "c1", session: str = "s1", timeout: float = 5.0, **options: Any
    ) -> Call:
        self._listens(queue)
        return super().subscribe(queue, sub, session, timeout, **options)

    def subscribe_and_do(self, queue: str, inner: Sequence[Op]) -> Call:
        self._listens(queue)
        return super().subscribe_and_do(queue, inner)

    def _listens(self, queue: str) -> None:
        """What was published before counts as kept; a subscription after the first finds nothing more."""
        if queue not in self._listened:
            self._listened[queue] = self.broker.journal.last_seq
            self._kept[queue] = self._published(queue) + self._kept[queue]

    def are(self, got: Sequence[Message], wanted: Sequence[bytes]) -> bool:
        """Whether each came once, in the order in which the server got them: who has a pool says them in any.

        One of which only a part has left may be missing: nothing is delivered again.
        """
        order = {body: number for number, body in enumerate(self._heard())}
        due = sorted(wanted, key=lambda body: order.get(body, 0))
        lost = self._messages(Tap.SAID | Tap.SENT, struck=True) - self._messages(Tap.SENT, struck=False)
        return super().are(got, due) or super().are(got, [body for body in due if body not in lost])

    def _messages(self, tap: Tap, *, struck: bool) -> set[bytes]:
        """What the messages carried that a fault has changed, cut or lost, or those that none has."""
        found = self.broker.journal.select(kind="Message", tap=tap)
        return {r.frame.payload for r in found if bool(r.fault) == struck and isinstance(r.frame, f.Message)}

    def _heard(self) -> list[bytes]:
        """All that was published by clients."""
        found = self.broker.journal.select(kind="Publish", tap=Tap.HEARD)
        return [record.frame.payload for record in found if isinstance(record.frame, f.Publish)]

    async def wait_messages(self, count: int, sub: str = "c1", within_s: float = 5.0) -> list[Message]:
        """Publish what is kept as soon as somebody listens, and wait."""
        end = self.client.now + within_s
        while any(self._kept.values()) and self.client.now < end:
            listening = set(self.fake.subscriptions)
            for queue, bodies in self._kept.items():
                if queue in listening:
                    while bodies and self.fake.publish(queue, bodies[0]):
                        del bodies[0]
            if not any(bodies for queue, bodies in self._kept.items() if queue in self._listened):
                break
            await asyncio.sleep(0.02)
        return await self.client.wait_messages(count, sub, max(0.0, end - self.client.now))


def _get(key: str) -> Op:
    return Op("call", "redis.call", "Command", "Reply", {"words": ["GET", key]})


SUBJECT = RedisSubject
