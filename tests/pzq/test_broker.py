"""The queue: acknowledgements, expiry, who gets what, restart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fakebrokers.errors import UsageError
from fakebrokers.pzq.broker import PzqBroker
from fakebrokers.pzq.profile import Options
from fakebrokers.pzq.store import Message

SECOND = 1_000_000


def bodies(units: list[tuple[bytes, ...]]) -> list[bytes]:
    return [unit[4] for unit in units]


@pytest.mark.parametrize("status", [b"0", b"OK", b"NO", b"01", b"", b"1 "])
def test_everything_but_1_is_negative_and_requeues_at_once(make_daemon: Any, status: bytes) -> None:
    daemon = make_daemon()
    producer, consumer = daemon.producer(), daemon.consumer()
    producer.send(b"i", b"", b"x")
    ((key, sent, *_),) = consumer.take()
    daemon.now += 0.001
    consumer.send(key, status)
    ((again, later, *_),) = consumer.take()
    assert again == key
    assert int(later) == int(sent) + 1000
    assert daemon.report()["messages_inflight"] == 1


def test_a_positive_ack_removes_only_what_is_in_flight(make_daemon: Any) -> None:
    daemon = make_daemon(ack_timeout=SECOND, reaper_frequency=SECOND // 2)
    producer, consumer = daemon.producer(), daemon.consumer()
    producer.send(b"i", b"", b"x")
    ((key, *_),) = consumer.take()
    consumer.capacity = 0  # nobody takes it
    daemon.advance(2.0)
    assert daemon.report() | {"db_size": 0} == {
        "messages": 1,
        "messages_inflight": 0,
        "db_size": 0,
        "inflight_db_size": 8_390_592,
        "syncs": 0,
        "expired_messages": 1,
    }
    consumer.send(key, b"1")  # too late, and too early
    assert daemon.report()["messages"] == 1
    consumer.capacity = 1
    assert consumer.take() == []
    ((again, *_),) = consumer.take()
    assert again == key
    consumer.send(key, b"1")
    assert daemon.report()["messages"] == 0
    consumer.send(key, b"1")
    consumer.send(key, b"0")
    assert daemon.report()["messages"] == 0
    assert consumer.take() == []


def test_an_ack_of_another_consumer_counts(make_daemon: Any) -> None:
    daemon = make_daemon()
    producer, first, second = daemon.producer(), daemon.consumer(), daemon.consumer()
    producer.send(b"i", b"", b"x")
    ((key, *_),) = first.take()
    second.send(key, b"1")
    assert daemon.report()["messages"] == 0


def test_round_robin_over_those_that_have_room(make_daemon: Any) -> None:
    daemon = make_daemon()
    producer = daemon.producer()
    one, two, three = (daemon.consumer() for _ in range(3))
    two.capacity = 1
    for number in range(7):
        producer.send(b"", b"", b"%d" % number)
    assert bodies(one.take()) == [b"0", b"3", b"5"]
    assert bodies(two.take()) == [b"1"]
    assert bodies(three.take()) == [b"2", b"4", b"6"]


def test_single_messages_go_round_too(make_daemon: Any) -> None:
    daemon = make_daemon()
    producer, one, two = daemon.producer(), daemon.consumer(), daemon.consumer()
    for number in range(4):
        producer.send(b"", b"", b"%d" % number)
        daemon.advance(0.1)
    assert bodies(one.take()) == [b"0", b"2"]
    assert bodies(two.take()) == [b"1", b"3"]


def test_without_consumer_messages_wait_and_a_consumer_that_left_keeps_its_own(make_daemon: Any) -> None:
    daemon = make_daemon(ack_timeout=SECOND, reaper_frequency=0)
    producer = daemon.producer()
    producer.send(b"", b"", b"a")
    assert daemon.report()["messages_inflight"] == 0
    consumer = daemon.consumer()
    assert bodies(consumer.take()) == [b"a"]
    consumer.close()
    other = daemon.consumer()
    daemon.advance(0.9)
    assert other.take() == []
    daemon.advance(0.2)
    assert bodies(other.take()) == [b"a"]


def test_exact_expiry(make_daemon: Any) -> None:
    daemon = make_daemon(ack_timeout=SECOND, reaper_frequency=0)
    producer, consumer = daemon.producer(), daemon.consumer()
    producer.send(b"", b"", b"a")
    daemon.advance(0.3)
    producer.send(b"", b"", b"b")
    first = {unit[4]: int(unit[1]) for unit in consumer.take()}
    assert daemon.advance(5.0, until=lambda: consumer.inbox) == pytest.approx(0.7, abs=1e-4)
    daemon.advance(0.5)
    again = {unit[4]: int(unit[1]) for unit in consumer.take()}
    assert all(0 < again[body] - first[body] - SECOND < 100 for body in first)
    assert daemon.report()["expired_messages"] == 2


@pytest.mark.parametrize("offset", [0.0, 0.01, 0.2, 0.49])
def test_expiry_within_the_reapers_window(make_daemon: Any, offset: float) -> None:
    daemon = make_daemon(ack_timeout=SECOND, reaper_frequency=SECOND // 2)
    producer, consumer = daemon.producer(), daemon.consumer()
    daemon.advance(offset)
    producer.send(b"", b"", b"a")
    ((_, sent, *_),) = consumer.take()
    daemon.advance(5.0, until=lambda: consumer.inbox)
    ((_, again, *_),) = consumer.take()
    assert SECOND < int(again) - int(sent) <= SECOND * 3 // 2


def test_the_reaper_looks_at_a_later_moment_where_a_quotient_is_rounded_down(make_daemon: Any) -> None:
    daemon = make_daemon(ack_timeout=SECOND, reaper_frequency=SECOND // 5)
    daemon.now = 16.1
    producer, consumer = daemon.producer(), daemon.consumer()
    producer.send(b"", b"", b"a")
    daemon.advance(2.0)  # 16.2 / 0.2 is below 81
    assert bodies(consumer.take()) == [b"a", b"a"]


def test_a_nack_comes_before_what_waits_longer_only_by_its_key(make_daemon: Any) -> None:
    daemon = make_daemon()
    producer, consumer = daemon.producer(), daemon.consumer()
    consumer.capacity = 2
    for number in range(4):
        producer.send(b"", b"", b"%d" % number)
    first, second = consumer.inbox
    consumer.inbox.clear()
    consumer.capacity = 0
    consumer.send(second[0], b"0")
    consumer.send(first[0], b"0")
    consumer.capacity = 10
    consumer.take()
    assert bodies(consumer.take()) == [b"0", b"1", b"2", b"3"]


def test_skip_delivers_single_messages_in_order(make_daemon: Any) -> None:
    daemon = make_daemon(order="skip")
    producer, consumer = daemon.producer(), daemon.consumer()
    for number in range(30):
        producer.send(b"", b"", b"%d" % number)
        daemon.advance(0.001)
    assert bodies(consumer.take()) == [b"%d" % number for number in range(30)]


def test_skip_leaves_nothing_behind(make_daemon: Any) -> None:
    daemon = make_daemon(order="skip")
    producer = daemon.producer()
    for number in range(500):
        producer.send(b"", b"", b"%d" % number)
    consumer = daemon.consumer()
    daemon.advance(1.0)
    got = [int(body) for body in bodies(consumer.take())]
    assert sorted(got) == list(range(500))
    assert got != sorted(got)


def test_every_backlog_skips_like_the_first(make_daemon: Any) -> None:
    daemon = make_daemon(order="skip")
    producer, consumer = daemon.producer(), daemon.consumer()
    orders = []
    for _ in range(2):
        consumer.capacity = 0
        for number in range(20):
            producer.send(b"", b"", b"%d" % number)
        consumer.capacity = 100
        consumer.take()
        daemon.advance(0.1)
        orders.append(bodies(consumer.take()))
    assert orders[0] == orders[1]
    assert orders[0][:8] == [b"0", b"1", b"2", b"3", b"4", b"6", b"7", b"9"]


def test_each_expiry_counts_until_the_restart(make_daemon: Any) -> None:
    daemon = make_daemon(ack_timeout=SECOND, reaper_frequency=SECOND)
    producer, consumer = daemon.producer(), daemon.consumer()
    for _ in range(3):
        producer.send(b"", b"", b"x")
    daemon.advance(2.5)
    assert len(consumer.take()) == 6
    assert daemon.report()["expired_messages"] == 3
    daemon.broker.expire_now(daemon.now)
    assert daemon.report()["expired_messages"] == 6
    daemon.restart()
    assert daemon.report()["expired_messages"] == 0


@pytest.mark.parametrize("order", ["skip", "strict"])
def test_what_expires_at_once_goes_out_before_what_waited_behind_it(make_daemon: Any, order: str) -> None:
    daemon = make_daemon(order=order)
    producer, consumer = daemon.producer(), daemon.consumer()
    consumer.capacity = 2
    for number in range(6):
        producer.send(b"", b"", b"%d" % number)
    delivered = list(consumer.inbox)
    consumer.inbox.clear()
    daemon.broker.expire_now(daemon.now)
    assert bodies(delivered) == bodies(list(consumer.inbox)) == [b"0", b"1"]


def test_sizes_that_the_monitor_tells(make_daemon: Any) -> None:
    daemon = make_daemon()
    producer, consumer = daemon.producer(), daemon.consumer()
    producer.send(b"", b"", b"small")
    assert daemon.report()["db_size"] == 400_128
    assert daemon.report()["inflight_db_size"] == 8_390_592 + 101
    producer.send(b"", b"", bytes(3_145_728))
    assert 0 <= daemon.report()["db_size"] - 400_128 - 3_145_728 < 1024
    for unit in consumer.take():
        consumer.send(unit[0], b"1")
    assert daemon.report()["db_size"] == 400_128


def test_restart_delivers_everything_unacked_again(make_daemon: Any) -> None:
    daemon = make_daemon()
    producer, consumer = daemon.producer(), daemon.consumer()
    for number in range(3):
        producer.send(b"", b"", b"%d" % number)
    consumer.send(consumer.take()[1][0], b"1")
    daemon.restart()
    daemon.broker.turn(daemon.now)
    assert bodies(consumer.take()) == [b"0", b"2"]
    daemon.broker.reset()
    assert daemon.report()["messages"] == 0


def test_a_clock_that_was_set_back(make_daemon: Any) -> None:
    """Keys and delivery times follow the wall clock; expiry does not."""
    shift = [0.0]
    daemon = make_daemon(ack_timeout=SECOND, reaper_frequency=0)
    broker = PzqBroker(options=daemon.broker.options, wall=lambda now: daemon.wall(now) + shift[0])
    late = broker.put((b"x",), 10.0)
    shift[0] = -3600.0
    early = broker.put((b"y",), 11.0)
    stamps = [int(key.split(b"|")[0]) for key in (late, early)]
    assert stamps[1] - stamps[0] == pytest.approx(-3599 * SECOND, abs=10)


def test_keys_of_one_moment_keep_their_order() -> None:
    broker = PzqBroker()
    keys = [broker.put((b"x",), 5.0) for _ in range(100)]
    assert keys == sorted(keys)
    assert len({key.split(b"|")[0] for key in keys}) == 100


@pytest.mark.parametrize(
    "wrong",
    [{"ack_timeout": -1}, {"reaper_frequency": -1}, {"inflight_size": 0}, {"order": "random"}],
)
def test_options_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Options(**wrong)


class Hand:
    """A consumer that takes `room` messages."""

    def __init__(self) -> None:
        self.room = 0
        self.got: list[bytes] = []

    @property
    def ready(self) -> bool:
        return self.room > 0

    def deliver(self, message: Message, sent: int, timeout: int) -> None:
        self.room -= 1
        self.got.append(message.key)


class Queue(RuleBasedStateMachine):
    """Whatever happens: what is stored is in flight or waits, and what was settled is gone for good."""

    @initialize(
        order=st.sampled_from(["strict", "skip"]),
        size=st.sampled_from([1, 4096, 31_457_280]),
        reaper=st.sampled_from([0, 500_000]),
        seed=st.integers(0, 2**32),
    )
    def start(self, order: Any, size: int, reaper: int, seed: int) -> None:
        self.now = 0.0
        options = Options(ack_timeout=SECOND, reaper_frequency=reaper, inflight_size=size, order=order)
        self.broker = PzqBroker(options=options, seed=seed)
        self.hands = [Hand(), Hand()]
        for hand in self.hands:
            self.broker.attach(hand)
        self.stored: set[bytes] = set()

    @rule(count=st.integers(1, 8))
    def produce(self, count: int) -> None:
        for _ in range(count):
            self.stored.add(self.broker.put((b"x",), self.now))
            self.broker.turn(self.now)

    @rule(who=st.integers(0, 1), room=st.integers(1, 5))
    def read(self, who: int, room: int) -> None:
        self.hands[who].room = room
        self.broker.turn(self.now)

    @rule(seconds=st.floats(0.01, 3.0))
    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        for _ in range(50):
            due = self.broker.timers.next_due
            if due > end:
                break
            self.now = max(self.now, due)
            self.broker.timers.run(self.now)
        self.now = end

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), status=st.sampled_from([b"1", b"0"]))
    def acknowledge(self, data: st.DataObject, status: bytes) -> None:
        key = data.draw(st.sampled_from(sorted(self.stored)))
        in_flight = key in self.broker.in_flight
        assert self.broker.acknowledge(key, status) == in_flight
        if in_flight and status == b"1":
            self.stored.remove(key)
        self.broker.turn(self.now)

    @rule()
    def restart(self) -> None:
        self.broker.restarted(self.now)
        assert self.broker.in_flight == []

    @invariant()
    def everything_is_somewhere(self) -> None:
        assert {message.key for message in self.broker.store} == self.stored
        in_flight = set(self.broker.in_flight)
        assert in_flight <= self.stored
        assert self.broker.waiting == len(self.stored) - len(in_flight)

    def teardown(self) -> None:
        """Everything that is left can be had and acknowledged."""
        if self.broker.options.inflight_size > 1:
            for _ in range(20 * len(self.stored)):
                self.hands[0].room = 1
                self.broker.turn(self.now)
                self.now += 0.001
                for key in self.broker.in_flight:
                    self.broker.acknowledge(key, b"1")
            assert len(self.broker.store) == 0


QueueTest = Queue.TestCase
QueueTest.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
