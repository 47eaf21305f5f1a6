"""The broker against a naive model: at least once, in order, within limits, whatever clients do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fakebrokers.blazingmq.broker import BlazingBroker
from fakebrokers.blazingmq.codes import DEFAULT_APP, AckStatus, Compression
from fakebrokers.blazingmq.domains import Domain, Domains
from fakebrokers.blazingmq.handle import Handle
from fakebrokers.blazingmq.message import Message
from fakebrokers.blazingmq.options import SubscriptionInfo
from fakebrokers.blazingmq.profile import REAL
from fakebrokers.blazingmq.properties import Content, Property, PropertyType, Style, write_content
from fakebrokers.blazingmq.stream import Consumer
from tests.blazingmq.bench import guid

APPS = ("a", "b")
ATTEMPTS = 2
EVEN, ODD = "x % 2 == 0", "x % 2 == 1"


class Reader:
    """A client with a handle that reads some apps; it notes what it gets, as a client would."""

    def __init__(self) -> None:
        self.takes_messages = True
        self.handle: Handle | None = None
        self.unconfirmed: dict[str, list[bytes]] = {}
        self.limits: dict[str, tuple[int, int]] = {}
        self.expressions: dict[str, str] = {}
        self.numbers: dict[int, str] = {}

    @property
    def handles(self) -> dict[int, Handle]:
        return {} if self.handle is None else {self.handle.q_id: self.handle}

    def push(
        self, handle: Handle, message: Message, infos: Sequence[SubscriptionInfo], out_of_order: bool
    ) -> None:
        assert handle is self.handle
        assert self.takes_messages
        for info in infos:
            app = self.numbers[info.number]
            held = self.unconfirmed.setdefault(app, [])
            assert message.guid not in held
            held.append(message.guid)
            wanted = self.expressions[app]
            x = message.guid[-1]
            assert not wanted or (x % 2 == 0) == (wanted == EVEN)


class QueueMachine(RuleBasedStateMachine):
    """A fanout queue of two apps, with producers and consumers that come, go, confirm and die."""

    def __init__(self) -> None:
        super().__init__()
        domain = Domain("fanout", APPS, max_delivery_attempts=ATTEMPTS, queue_messages=39)
        self.broker = BlazingBroker(REAL, domains=Domains({"d": domain}))
        self.producer = Reader()
        self.posting = self.broker.open(self.producer, "bmq://d/q", 0, DEFAULT_APP, 0, 0, 1)
        self.queue = self.posting.queue
        self.readers: list[Reader] = []
        self.missing: dict[str, dict[bytes, int]] = {app: {} for app in APPS}  #: attempts that are left
        self.number = 0
        self.subscription = 0

    def stored(self) -> set[bytes]:
        return {each for app in APPS for each in self.missing[app]}

    @rule()
    def post(self) -> None:
        self.number += 1
        new = guid(self.number)
        content = Content(b"data", {"x": Property(PropertyType.INT32, new[-1])})
        data = write_content(content, Style.OLD, Compression.NONE)
        full = len(self.stored()) >= 40
        status = self.posting.post(Message(new, data, True, 0, 0, 0.0))
        assert status == (AckStatus.LIMIT_MESSAGES if full else AckStatus.SUCCESS)
        if not full:
            for app in APPS:
                self.missing[app][new] = ATTEMPTS

    @rule()
    def post_again(self) -> None:
        if self.number:
            again = Message(guid(self.number), b"data", False, 0, 0, 0.0)
            if guid(self.number) in self.queue._history:
                assert self.posting.post(again) is AckStatus.SUCCESS

    @precondition(lambda self: len(self.readers) < 4)
    @rule(apps=st.sets(st.sampled_from(APPS), min_size=1))
    def open(self, apps: set[str]) -> None:
        reader = Reader()
        for app in sorted(apps):
            reader.handle = self.broker.open(reader, "bmq://d/q", 1, app, APPS.index(app) + 1, 1, 0)
        self.readers.append(reader)

    @rule(
        data=st.data(),
        take=st.integers(0, 6),
        priority=st.integers(0, 2),
        turns=st.integers(1, 3),
        text=st.sampled_from(["", "", EVEN, ODD]),
    )
    def configure(self, data: st.DataObject, take: int, priority: int, turns: int, text: str) -> None:
        if not self.readers:
            return
        reader = data.draw(st.sampled_from(self.readers))
        assert reader.handle is not None
        app = data.draw(st.sampled_from(sorted(reader.handle.streams)))
        self.subscription += 1
        reader.numbers[self.subscription] = app
        reader.limits[app] = (take, len(reader.unconfirmed.get(app, ())))
        reader.expressions[app] = text
        consumer = Consumer(self.subscription, text, take, 1 << 20, priority, turns)
        reader.handle.configure(app, [consumer] if take else [])
        self.queue.app(app).deliver()

    @rule(data=st.data(), count=st.integers(1, 4))
    def confirm(self, data: st.DataObject, count: int) -> None:
        holding = [(reader, app) for reader in self.readers for app in reader.unconfirmed]
        if not holding:
            return
        reader, app = data.draw(st.sampled_from(holding))
        assert reader.handle is not None
        held = reader.unconfirmed[app]
        for each in data.draw(st.permutations(held))[:count]:
            held.remove(each)
            self.missing[app].pop(each, None)
            reader.handle.confirm(each, APPS.index(app) + 1)

    @rule(data=st.data(), lost=st.booleans())
    def leave(self, data: st.DataObject, lost: bool) -> None:
        if not self.readers:
            return
        reader = data.draw(st.sampled_from(self.readers))
        self.readers.remove(reader)
        assert reader.handle is not None
        reader.takes_messages = False
        if lost:
            for app, held in reader.unconfirmed.items():
                for each in held:
                    self.missing[app][each] -= 1
                    if not self.missing[app][each]:
                        del self.missing[app][each]
        reader.handle.drop(lost=lost)

    @rule(data=st.data())
    def close_one_app(self, data: st.DataObject) -> None:
        open_twice = [r for r in self.readers if r.handle is not None and len(r.handle.streams) == 2]
        if not open_twice:
            return
        reader = data.draw(st.sampled_from(open_twice))
        app = data.draw(st.sampled_from(APPS))
        reader.unconfirmed.pop(app, None)
        assert reader.handle is not None
        reader.handle.release(app, 1, 0, final=False)

    @invariant()
    def nothing_is_lost_and_nothing_else_is_stored(self) -> None:
        assert set(self.queue.messages) == self.stored()
        for app in APPS:
            waiting = {guid for guid, each in self.queue.messages.items() if app in each.waiting}
            assert waiting == set(self.missing[app])

    @invariant()
    def every_message_is_held_by_one_reader_or_waits(self) -> None:
        for app in APPS:
            held = [each for reader in self.readers for each in reader.unconfirmed.get(app, ())]
            assert len(held) == len(set(held))
            assert set(held) <= set(self.missing[app])
            assert self.queue.app(app).undelivered == len(self.missing[app]) - len(held)

    @invariant()
    def nobody_has_more_than_allowed(self) -> None:
        for reader in self.readers:
            for app, (take, before) in reader.limits.items():
                assert len(reader.unconfirmed.get(app, ())) <= take + before

    @invariant()
    def nobody_waits_for_what_is_there(self) -> None:
        """Where nobody has an expression, all that wait for messages are full or have a lower priority.

        Messages that clients were lost with come one by one.
        """
        while (due := self.broker.timers.next_due) < math.inf:
            self.broker.timers.run(due)
        for app in APPS:
            streams = self.queue.app(app).streams
            there = [consumer for stream in streams for consumer in stream.consumers]
            if not self.queue.app(app).undelivered or any(consumer.expression for consumer in there):
                continue
            best = max((consumer.priority for consumer in there), default=0)
            takers = [each for group in self.queue.app(app).groups for each in group.subscribers]
            assert all(each.flow.full and each.consumer.priority == best for each in takers)


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
TestQueue = QueueMachine.TestCase
