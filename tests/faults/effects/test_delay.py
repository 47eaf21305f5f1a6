"""Frames that are late: delay, latency and throttle, each way."""

from __future__ import annotations

from fakebrokers.faults import (
    delay,
    latency,
    throttle,
)
from fakebrokers.journal import Tap
from tests.core.talk import Talk

# delay and latency


def test_delay_lets_others_pass() -> None:
    talk = Talk(delay(0.5, role="confirm", nth=1))
    assert talk.send(b"put a", b"put b") == [b"stored b\n"]
    assert talk.at(0.4) == []
    assert talk.at(0.5) == [b"stored a\n"]


def test_delay_in() -> None:
    talk = Talk(delay(0.5, kind="Put", nth=1))
    assert talk.send(b"put a x", b"put a y") == [b"stored a\n"]
    talk.at(0.5)
    assert talk.broker.values == {"a": "x"}


def test_latency_keeps_order() -> None:
    talk = Talk(latency(0.5, role="confirm", nth=1))
    assert talk.send(b"put a", b"put b") == []
    talk.now = 0.2
    assert talk.send(b"put c") == []
    assert talk.at(0.49) == []
    assert talk.at(0.5) == [b"stored a\nstored b\nstored c\n"]
    assert talk.send(b"put d") == [b"stored d\n"]


def test_latency_each_way_with_jitter() -> None:
    talk = Talk(latency(0.3, jitter=0.1), seed=3)
    arrivals = []
    for number in range(20):
        talk.now += 0.01
        talk.send(b"put %d" % number)
    for step in range(200):
        if talk.at(0.2 + step * 0.01):
            arrivals.append(talk.now)
    confirms = [r for r in talk.records("Stored") if r.tap is Tap.SENT]
    assert [r.keys for r in confirms] == [(str(n),) for n in range(20)]
    assert 0.4 <= arrivals[0] <= 0.82
    assert arrivals[-1] <= 1.1


def test_both_latencies_of_two_rules_add_up() -> None:
    talk = Talk(latency(0.2, role="confirm"), latency(0.3, role="confirm"))
    talk.send(b"put a")
    assert talk.at(0.49) == []
    assert talk.at(0.5) == [b"stored a\n"]


# throttle


def test_throttle_out() -> None:
    talk = Talk(throttle(200, kind="Value"))  # 20 writes of 10 bytes in a second
    talk.send(b"put k " + b"x" * 92)
    assert talk.send(b"get k", b"get k") == [b"value k xx"]
    assert len(b"".join(talk.at(0.46))) == 90
    assert len(b"".join(talk.at(1.01))) == 102
    assert [r.size for r in talk.records("Value") if r.tap is Tap.SENT] == [101, 101]


def test_throttle_in_is_slow_reading() -> None:
    talk = Talk(throttle(1000, direction="in", role="publish"))
    line = b"put k " + b"x" * 493
    assert talk.send(line, line) == []
    assert talk.at(0.49) == []
    assert talk.at(0.5) == [b"stored k\n"]
    assert talk.at(0.99) == []
    assert talk.at(1.0) == [b"stored k\n"]


def test_throttle_in_stops_reading_when_too_much_waits() -> None:
    talk = Talk(throttle(1000, direction="in"))
    for _ in range(40):
        talk.send(b"put k " + b"x" * 50_000)
        if not talk.wire.reading:
            break
    assert not talk.wire.reading
    assert talk.link.pipe.lanes["in"].size < 1_200_000
    talk.at(2000.0)
    assert talk.wire.reading
