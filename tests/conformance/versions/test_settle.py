"""How many runs make an outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from conformance.versions.search import Skipped, VersionOutcome, search
from conformance.versions.settle import ENOUGH, MOST, SettledJudge, Shown

PASS, FAIL = Shown(passes=1), Shown(fails=1, detail="it hangs")


class Runs:
    """Runs of versions as they were written down; `done` counts them."""

    def __init__(self, **shown: Iterable[Shown | Skipped]) -> None:
        self._shown = {version: iter(each) for version, each in shown.items()}
        self.done = dict.fromkeys(shown, 0)

    def __call__(self, version: str) -> Shown | Skipped:
        self.done[version] += 1
        return next(self._shown[version])


def always(shown: Shown) -> Iterable[Shown]:
    return iter(lambda: shown, None)


def every(nth: int) -> Iterable[Shown]:
    """Fails in every nth run."""
    return (FAIL if number % nth == 0 else PASS for number in range(1, 1000))


@pytest.mark.parametrize(
    ("shown", "outcome"),
    [
        (PASS, VersionOutcome("pass", runs=3)),
        (FAIL, VersionOutcome("fail", detail="it hangs", runs=3)),
        (Shown(fails=2, detail="it hangs"), VersionOutcome("fail", detail="it hangs", runs=4)),
        (Shown(fails=1, passes=2), VersionOutcome("fail", steady=False, runs=6)),
    ],
)
def test_runs_that_are_alike_make_an_outcome(shown: Shown, outcome: VersionOutcome) -> None:
    assert SettledJudge(Runs(v=always(shown)), 3).judge("v") == outcome


def test_what_differs_is_looked_at_more_often_to_know_how_rare_it_is() -> None:
    runs = Runs(v=[PASS, FAIL, PASS, PASS, PASS, PASS])
    outcome = SettledJudge(runs, 2).judge("v")
    assert outcome == VersionOutcome("fail", steady=False, detail="it hangs", runs=ENOUGH)


def test_a_version_that_says_nothing_is_skipped() -> None:
    assert SettledJudge(Runs(v=[PASS, Skipped("its adapter")]), 2).judge("v") == Skipped("its adapter")


@pytest.mark.parametrize(("nth", "needed"), [(2, 6), (6, MOST)])
def test_a_rare_defect_takes_more_runs_of_each_version(nth: int, needed: int) -> None:
    runs = Runs(rare=every(nth), fine=always(PASS), broken=always(FAIL))
    settled = SettledJudge(runs, 2)
    assert settled.judge("fine") == VersionOutcome("pass", runs=2)
    settled = SettledJudge(runs, nth)
    settled.judge("rare")
    assert settled.judge("fine") == VersionOutcome("pass", runs=needed)
    assert settled.judge("broken") == VersionOutcome("fail", detail="it hangs", runs=1), "one run is enough"


@pytest.mark.parametrize("order", [str, lambda version: -ord(version)])
def test_the_version_in_which_a_rare_defect_came_is_named(order: Callable[[str], object]) -> None:
    """Each third run fails: two runs of a version alone would often miss it."""
    versions = sorted("abcdefgh", key=order)  # type: ignore[arg-type]
    runs = Runs(**{each: every(3) if versions.index(each) >= 3 else always(PASS) for each in versions})
    found = search(versions, SettledJudge(runs, 3).judge, lambda _: "")
    assert (found.before, found.changed_in) == (versions[2], versions[3])
    assert not found.judged[versions[3]].steady or found.judged[versions[3]].word == "fail"


def test_a_failure_is_told_from_others_where_all_runs_show_the_same() -> None:
    late, hang = Shown(fails=1, by="late"), Shown(fails=1, by="hang")
    assert SettledJudge(Runs(v=always(late)), 2).judge("v") == VersionOutcome("fail", runs=2, by="late")
    assert SettledJudge(Runs(v=[late, hang]), 2).judge("v") == VersionOutcome("fail", runs=2)


def test_a_version_that_is_asked_about_again_is_run_as_often_again() -> None:
    runs = Runs(a=[PASS, PASS, FAIL, PASS, *[PASS] * MOST])
    judge = SettledJudge(runs)
    first, again = judge.judge("a"), judge.judge("a")
    assert isinstance(first, VersionOutcome) and isinstance(again, VersionOutcome)
    assert (first.word, first.runs, again.word, again.steady) == ("pass", 2, "fail", False)
