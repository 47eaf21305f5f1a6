"""Thousands of faults: a frame pays for those that can fit it, and a plan once for each of its faults."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fakebrokers.core.timers import Timer
from fakebrokers.faults import Fault, load_plan
from fakebrokers.faults.effects import Drop, Fin
from fakebrokers.faults.match import Match, Moment
from fakebrokers.faults.pipe import Pipe
from fakebrokers.faults.rule import Rule
from tests.core.talk import Talk


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The faults that were asked whether they take place."""
    found: list[str] = []

    def counted(self: Rule, *arguments: Any) -> bool:
        found.append(self.name)
        return decide(self, *arguments)

    decide = Rule.decide
    monkeypatch.setattr(Rule, "decide", counted)
    return found


def never(name: str, **match: Any) -> Fault:
    return Fault(name=name, match=Match(nth=1_000_000, **match), effects=(Drop(),))


def test_a_frame_asks_those_of_its_kind_and_direction_alone(asked: list[str]) -> None:
    others: tuple[dict[str, Any], ...] = (
        {"kind": "Get"},
        {"role": "deliver"},
        {"direction": "out", "role": "heartbeat"},
        {"connection": "c9"},
        {"peer": "somebody"},
    )
    faults = [never(f"{number} {match}", **match) for number in range(1000) for match in others]
    moments = [
        Fault(name=f"{on} {number}", match=Match(nth=1_000_000, on=on), effects=(Fin(),))
        for number in range(10)
        for on in (Moment.ACCEPT, Moment.READY)
    ]
    talk = Talk(*faults, *moments, never("this one", kind="Put"), never("its answer", role="confirm"))
    asked.clear()
    assert talk.send(b"put a x") == [b"stored a\n"]
    assert talk.feed(b"put b") == []  # the moment when it has come in part has no faults
    assert talk.feed(b" y\n") == [b"stored b\n"]
    assert asked == ["this one", "its answer"] * 2


def test_a_frame_puts_off_what_waits_for_silence_without_asking_it(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [Match(on=Moment.IDLE, direction="in", after_s=60.0 + number) for number in range(1000)]
    talk = Talk(*[Fault(name=f"{match.after_s}", match=match, effects=(Fin(),)) for match in waits])
    moved: list[float | None] = []

    def counted(self: Timer, when: float | None) -> None:
        moved.append(when)
        set_timer(self, when)

    set_timer = Timer.set
    monkeypatch.setattr(Timer, "set", counted)
    for number in range(20):
        talk.at(float(number))
        talk.send(b"beat")
    assert len(moved) < 50
    assert talk.wire.ended is None
    talk.at(19.0 + 59.9)
    assert talk.wire.ended is None
    talk.at(19.0 + 60.0)
    assert talk.wire.ended is not None


def test_adding_one_looks_at_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Match] = []
    concerns = Pipe._concerns

    def counted(self: Pipe, match: Match) -> bool:
        looked.append(match)
        return concerns(self, match)

    monkeypatch.setattr(Pipe, "_concerns", counted)
    talk = Talk(*[never(f"{number}", kind="Get") for number in range(1000)])
    looked.clear()
    talk.engine.injector.add([never("one more", kind="Get")])
    assert len(looked) == 1
    assert talk.engine.injector.find("one more").name == "one more"


def test_a_plan_is_read_in_time_that_grows_as_it_does() -> None:
    def seconds(count: int) -> float:
        rows = [
            {"name": f"f{number}", "match": {"role": "publish", "nth": 9}, "effect": {"type": "drop"}}
            for number in range(count)
        ]
        begun = time.process_time()
        load_plan({"faults": rows})
        return time.process_time() - begun

    seconds(10)
    few, many = min(seconds(100) for _ in range(3)), seconds(1000)
    assert many < 30 * few  # ten times as many; quadratic would be a hundred times
