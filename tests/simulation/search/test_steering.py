"""Lines of the application steer the search: what reaches new ones is changed, and tried again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from fakebrokers.cli import main
from fakebrokers.errors import UsageError
from fakebrokers.faults import Realism
from fakebrokers.faults.steps import Step
from fakebrokers.simulation.search.draw import clash, kinds
from fakebrokers.simulation.search.lines import lines_of, ranges, reaching
from fakebrokers.simulation.search.schedule import Schedule
from fakebrokers.simulation.search.steering import STEPS_MAX, Corpus, Kept, changed
from fakebrokers.simulation.search.worker import Setting, Wish, Worker
from tests.simulation.search import worlds
from tests.simulation.search.test_draw import SURVEY

HERE = Path(__file__).parent
PLACE = "tests.simulation.search.worlds"

MODULE = '''
"""A module."""
import sys

class Shop:
    """A shop."""

    open = True

    def sell(self, what):
        """Sell it."""
        if what:
            return (
                what,
                [each for each in what],
            )
        raise ValueError(
            "nothing")

def deco(function):
    return function

@deco
def never(
    x,
):
    while x:
        x = 0
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of that text."""
    (tmp_path / "steered.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    import steered  # type: ignore[import-not-found] # written just now

    yield steered
    del sys.modules["steered"]


def test_lines_are_those_in_functions(module: Any) -> None:
    assert lines_of(["steered"]) == {module.__file__: [12, 13, 14, 15, 17, 18, 21, 27, 28]}


def test_what_is_reached(module: Any) -> None:
    file = module.__file__
    for _ in range(2):  # a second time the same
        with reaching([file]) as seen:
            module.Shop().sell("tea")
        assert seen.keys() - {(file, 15)} == {(file, 12), (file, 13), (file, 14)}
    with reaching([file]) as seen:
        module.deco(1)
        before = sys.gettrace()
    assert seen == {(file, 21): 0.0}
    assert (before is None, sys.gettrace()) == (sys.version_info >= (3, 12), None)


def test_lines_of_a_coroutine_that_goes_on() -> None:
    async def waits() -> None:
        await pause()
        after()

    import asyncio

    def after() -> None:
        """Does nothing."""

    async def pause() -> None:
        await asyncio.sleep(0)

    with reaching([__file__]) as seen:
        asyncio.run(waits())
    assert isinstance(waits, FunctionType)
    first = waits.__code__.co_firstlineno
    assert {(__file__, first + 1), (__file__, first + 2)} <= seen.keys()


def test_modules_that_cannot_be_steered_by() -> None:
    with pytest.raises(UsageError, match="--coverage: there is no module 'wolrds'"):
        lines_of(["wolrds"])
    with pytest.raises(UsageError, match="--coverage: 'math' is not written in Python"):
        lines_of(["math"])
    assert len(lines_of(["fakebrokers.simulation.search"])) > 10


def test_ranges() -> None:
    assert ranges([17, 31, 33, 32, 34, 40]) == "17, 31-34, 40"
    assert ranges([]) == ""


def test_a_change_is_of_one_step_and_depends_on_the_seed() -> None:
    corpus = Corpus()
    assert corpus.choose(1) is None
    step = Step("crash", 5, 10, {"how": "rst"}, "fault 1", "broker")
    corpus.add(Schedule(3, 600.0, shuffle=True, steps=(step,)), SURVEY, {("shop.py", 7): 40.0})
    kept = next(found for seed in range(100) if (found := corpus.choose(seed)) is not None)
    there = kinds(Realism.ENVIRONMENT)
    some = [changed(kept, seed, 600.0, there) for seed in range(200)]
    assert some == [changed(kept, seed, 600.0, there) for seed in range(200)]
    assert {len(each.steps) for each in some} == {1, 2, 3, 4}
    assert sum(step in each.steps for each in some) > 120
    added = [one for each in some for one in each.steps if one != step]
    assert sum(40 <= one.at_s <= 100 for one in added) > len(added) / 2  # when the new line was reached
    for seed, each in enumerate(some):
        assert (each.seed, each.shuffle, each.seconds) == (seed, True, 600.0)
        assert len({one.name for one in each.steps}) == len(each.steps)
        assert not any(clash(one, other) for one in each.steps for other in each.steps if one is not other)
    grown = kept
    for seed in range(100):
        grown = type(kept)(changed(grown, seed, 600.0, there), SURVEY, [40.0])
        assert len(grown.schedule.steps) <= STEPS_MAX


def test_rules_of_a_state_machine_keep_their_beginning() -> None:
    choices = bytes(range(100))
    kept = Kept(Schedule(1, 600.0, choices=choices), SURVEY, [40.0])
    some = [changed(kept, seed, 600.0, kinds(Realism.ENVIRONMENT)).choices for seed in range(100)]
    same = [each for each in some if each == choices]
    assert 30 < len(same) < 70
    assert {len(each) for each in some} == {100}
    assert sum(each[0] == 0 for each in some) > 90
    assert len(set(some)) > 30


def test_what_was_changed_least_comes_first() -> None:
    corpus = Corpus()
    step = Step("crash", 5, 10, {"how": "rst"}, "fault 1", "broker")
    corpus.add(Schedule(0, 600.0), SURVEY, {("shop.py", 6): 0.0})
    assert not any(corpus.choose(seed) for seed in range(40))  # without any step there is nothing to change
    corpus.add(Schedule(1, 600.0, steps=(step,)), SURVEY, {("shop.py", 7): 40.0})
    for seed in range(40):
        corpus.choose(seed)
    corpus.add(Schedule(2, 600.0, steps=(step,)), SURVEY, {("shop.py", 8): 50.0})
    chosen = [found.schedule.seed for seed in range(40) if (found := corpus.choose(seed)) is not None]
    assert chosen.count(2) > chosen.count(1)
    assert corpus.seen == {("shop.py", 6), ("shop.py", 7), ("shop.py", 8)}


def runs_until_found(first: int, coverage: list[str], most: int = 200) -> int:
    """How many seeds from `first` on it takes to find what is wrong with `worlds.two_faults`."""
    made = Worker(Setting(f"{PLACE}:two_faults", [], 600.0, False, "environment", [], coverage))
    made.survey()
    for number in range(most):
        outcome = made.answer(Wish(first + number)).outcome
        assert outcome is not None
        if outcome.failure is not None:
            assert "assert not lost" in outcome.failure.text
            return number + 1
    return most


def both(blocks: range) -> tuple[list[int], list[int]]:
    """Runs until it is found, from the same first seeds: with drawn plans, and with steered ones."""
    drawn = [runs_until_found(first, []) for first in blocks]
    steered = [runs_until_found(first, [PLACE]) for first in blocks]
    print(f"runs until it is found: drawn {drawn}, steered {steered}")
    return drawn, steered


@pytest.mark.full
def test_a_bug_that_needs_faults_in_sequence_is_found_in_fewer_runs() -> None:
    drawn, steered = both(range(1, 800, 200))
    assert sum(steered) < sum(drawn)


@pytest.mark.nightly
def test_on_average_two_thirds_of_the_runs_are_enough() -> None:
    drawn, steered = both(range(10_001, 16_400, 200))
    assert sum(steered) < sum(drawn) * 2 / 3


def simulate(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    with pytest.raises(SystemExit):
        main(["simulate", *words])
    return capsys.readouterr().out


def test_the_report_says_what_no_seed_has_reached(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    words = "worlds:fine", "--seeds", "1..30", "--coverage", "worlds", "--report", str(tmp_path)
    found = json.loads(simulate(capsys, *words, "--json"))
    again = json.loads(simulate(capsys, *words, "--json", "-n", "2"))
    assert found["coverage"] == again["coverage"]
    ((file, told),) = found["coverage"].items()
    text = (HERE / "worlds.py").read_text().splitlines()
    missed = {text[line - 1].strip() for line in told["missed"]}
    assert file == "worlds.py"
    assert 'raise ValueError("no shop")' in missed
    assert "while not await put(host, name):" not in missed
    assert told["lines"] > len(told["missed"]) > 20
    lines = simulate(capsys, *words).splitlines()
    assert (
        lines[0]
        == f"lines that were reached: {told['lines'] - len(told['missed'])} of {told['lines']}; never:"
    )
    assert lines[1] == f"  worlds.py: {ranges(told['missed'])}"


def test_without_it_nothing_is_steered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    found = json.loads(simulate(capsys, "worlds:fine", "--seeds", "1..2", "--json"))
    assert found["coverage"] == {}
    assert worlds.SEEN == []
