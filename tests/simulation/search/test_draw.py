"""Schedules from seeds: the same one gives the same schedule, about what the survey has seen."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fakebrokers.core.frames import Role
from fakebrokers.errors import UsageError
from fakebrokers.faults import Realism
from fakebrokers.faults.drawing import BY_NAME
from fakebrokers.faults.steps import FAULT
from fakebrokers.simulation.search.draw import draw, kinds
from fakebrokers.simulation.search.nemeses import NEMESES
from fakebrokers.simulation.search.schedule import Schedule, key, words_of
from fakebrokers.simulation.search.survey import BrokerSeen, Spoken, Survey

SPOKEN = [Spoken("in", Role.PUBLISH, 4), Spoken("out", Role.CONFIRM, 2)]
SURVEY = Survey(
    {"broker": BrokerSeen("rabbitmq-stream", 3, SPOKEN), "other": BrokerSeen("narconi", 1, SPOKEN)},
    ["shop", "mill"],
    [("shop", "broker")],
    [0.0, 7.125, 30.0],
    60.0,
)


def drawn(count: int = 300, *, realism: Realism = Realism.ILLEGAL, **options: bool) -> list[Schedule]:
    there = kinds(realism)
    return [draw(seed, SURVEY, 600.0, there, shuffle=options.get("shuffle", False)) for seed in range(count)]


def test_a_seed_gives_one_schedule_and_others_give_others() -> None:
    assert drawn() == drawn()
    assert len({key(one) for one in drawn()}) > 250
    assert {one.shuffle for one in drawn(9, shuffle=True)} == {True}


def test_everything_is_drawn_and_about_what_took_part() -> None:
    steps = [step for one in drawn() for step in one.steps]
    assert {step.kind for step in steps} == {*NEMESES, FAULT}
    for step in steps:
        targets = {"kill": {"shop", "mill"}, "partition": {"shop|broker"}, "latency": {"shop|broker"}}
        targets["node"] = {"broker"}  # the other one has a single node
        assert step.target in targets.get(step.kind, {"broker", "other"})
        assert 0 <= step.at_s <= 600 and step.for_s > 0
    rows = [step.args for step in steps if step.kind == FAULT]
    counts = {("in", "publish"): 4, ("out", "confirm"): 2}
    for row in rows:
        place = row["match"]["direction"], row["match"]["role"]
        assert row["match"].get("nth", 1) <= counts[place]
    assert {row["match"]["nth"] for row in rows if "nth" in row["match"]} == {1, 2, 3, 4}


def test_half_of_the_times_are_those_of_frames() -> None:
    times = [step.at_s for one in drawn() for step in one.steps]
    at_frames = sum(time in {7.125, 30.0} for time in times)
    assert len(times) / 8 < at_frames < len(times) / 2


def test_two_steps_that_would_end_each_other_are_not_drawn() -> None:
    for one in drawn(500):
        spans = sorted(
            (step.kind, step.target, step.at_s, step.at_s + step.for_s)
            for step in one.steps
            if step.kind != FAULT
        )
        for first, second in pairwise(spans):
            assert first[:2] != second[:2] or first[3] < second[2]


def test_realism_is_a_bound() -> None:
    order = list(Realism)
    for realism in Realism:
        faults = [name for name in kinds(realism) if name in BY_NAME and name not in NEMESES]
        assert {name for name in BY_NAME if name not in NEMESES} - set(faults) == {
            name
            for name, each in BY_NAME.items()
            if order.index(each.realism) > order.index(realism) and name not in NEMESES
        }


def test_only_what_is_wanted() -> None:
    there = kinds(Realism.ENVIRONMENT, ["kill", "drop"])
    assert there == ["kill", "drop"]
    steps = [step for seed in range(50) for step in draw(seed, SURVEY, 9.0, there, shuffle=False).steps]
    assert {step.kind for step in steps} == {"kill", FAULT}
    with pytest.raises(UsageError, match="'partition'"):
        kinds(Realism.ENVIRONMENT, ["partitoin"])
    with pytest.raises(UsageError, match="--fault: expected"):
        kinds(Realism.LEGAL, ["duplicate"])


def test_a_world_without_anything_has_no_faults() -> None:
    empty = Survey({}, [], [], [], 0.0)
    assert {draw(seed, empty, 9.0, kinds(Realism.ILLEGAL), shuffle=True).steps for seed in range(99)} == {()}


def test_faults_read_as_they_are_written_in_tests() -> None:
    words = [words_of(step) for one in drawn() for step in one.steps]
    assert any('drop(direction="out", role="confirm"' in each for each in words)
    assert any(each.endswith(" at broker") for each in words)
    assert any("s: crash of broker (how rst)" in each for each in words)
