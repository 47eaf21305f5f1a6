"""The search for the version that changed an outcome, on versions that are made up."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from conformance.versions.search import Bisection, Skipped, VersionOutcome, search


class History:
    """Versions that fail from one on.

    Attributes:
        asked: Of which the outcome was asked, in order.
    """

    def __init__(self, count: int, changed_at: int, refused: set[int], skipped: set[int]) -> None:
        self.versions = [str(number) for number in range(count)]
        self.asked: list[str] = []
        self.tried: list[str] = []
        self._changed_at = changed_at
        self._refused = refused
        self._skipped = skipped

    def judge(self, version: str) -> VersionOutcome | Skipped:
        self.asked.append(version)
        number = int(version)
        if number in self._skipped | self._refused:
            return Skipped("it says nothing")
        return VersionOutcome("fail" if number >= self._changed_at else "pass")

    def refused(self, version: str) -> str:
        self.tried.append(version)
        return "no hello" if int(version) in self._refused else ""

    def search(self) -> Bisection:
        return search(self.versions, self.judge, self.refused)


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, int, set[int]]:
    count = draw(st.integers(1, 60))
    left, right = draw(st.integers(0, count)), draw(st.integers(0, count))
    refused = set(range(left)) | set(range(count - right, count))
    skipped = draw(st.sets(st.integers(0, count - 1)))
    changed_at = draw(st.integers(0, count))
    return History(count, changed_at, refused, skipped), changed_at, refused | skipped


@given(histories())
def test_the_change_is_found_wherever_it_is(drawn: tuple[History, int, set[int]]) -> None:
    history, changed_at, silent = drawn
    speaking = [number for number in range(len(history.versions)) if number not in silent]
    found = history.search()
    if not speaking or (speaking[0] < changed_at) == (speaking[-1] < changed_at):
        assert (found.before, found.changed_in, found.possible) == (None, None, ())
        assert set(map(int, found.judged)) == ({speaking[0], speaking[-1]} if speaking else set())
        return
    before = max(number for number in speaking if number < changed_at)
    after = min(number for number in speaking if number >= changed_at)
    assert (found.before, found.changed_in) == (str(before), str(after))
    assert found.possible == tuple(map(str, range(before + 1, after)))
    assert {found.judged[str(before)].word, found.judged[str(after)].word} == {"pass", "fail"}


@given(histories())
def test_few_are_judged_and_skips_do_not_count(drawn: tuple[History, int, set[int]]) -> None:
    history, _, silent = drawn
    found = history.search()
    assert len(found.judged) <= math.ceil(math.log2(len(history.versions))) + 2
    assert set(map(int, found.skipped)) <= silent
    assert not set(found.judged) & set(found.skipped)
    again = Counter(history.asked)
    assert {version for version, times in again.items() if times > 1} <= {found.before, found.changed_in}
    assert max(again.values(), default=1) <= 2
    assert len(history.tried) == len(set(history.tried))


@given(st.integers(2, 500), st.integers(0, 499))
def test_many_versions_that_cannot_be_driven_cost_few_tries(count: int, refused: int) -> None:
    history = History(count, count, set(range(min(refused, count - 1))), set())
    history.search()
    assert len(history.tried) <= 2 * math.ceil(math.log2(count)) + 3


def test_of_two_changes_one_is_found() -> None:
    words = ["pass", "fail", "pass", "pass", "fail"]
    found = search([*"abcde"], lambda version: VersionOutcome(words["abcde".index(version)]), lambda _: "")
    assert (found.before, found.changed_in) in (("a", "b"), ("d", "e"))


def test_an_end_that_is_steady_is_looked_at_again_where_the_other_is_not() -> None:
    asked: list[str] = []

    def judge(version: str) -> VersionOutcome:
        asked.append(version)
        rarely = version != "a" and asked.count(version) > (version == "a")
        return VersionOutcome("fail", steady=False) if rarely else VersionOutcome("pass")

    search([*"abc"], judge, lambda _: "")
    assert asked == ["a", "c", "a", "b", "a", "b"]


def test_an_end_that_fails_only_at_the_second_look_agrees() -> None:
    looks = {
        "a": [VersionOutcome("pass"), VersionOutcome("fail", steady=False)],
        "b": [VersionOutcome("fail", steady=False)],
    }
    found = search([*"ab"], lambda version: looks[version].pop(0), lambda _: "")
    assert (found.changed_in, found.judged["a"].word) == (None, "fail")


def test_a_version_that_passed_by_chance_is_not_named() -> None:
    asked: Counter[str] = Counter()

    def judge(version: str) -> VersionOutcome:
        asked[version] += 1
        fails = version < "f" and not (version == "d" and asked[version] == 1)
        return VersionOutcome("fail" if fails else "pass")

    found = search([*"abcdefgh"], judge, lambda _: "")
    assert (found.before, found.changed_in) == ("e", "f")


def test_a_version_that_the_machine_was_too_busy_for_is_tried_once_more() -> None:
    asked: Counter[str] = Counter()

    def judge(version: str) -> VersionOutcome | Skipped:
        asked[version] += 1
        if version == "e" and asked[version] == 1:
            return Skipped("inconclusive", passing=True)
        if version == "d":
            return Skipped("inconclusive", passing=True)
        return VersionOutcome("fail" if version < "f" else "pass")

    found = search([*"abcdefgh"], judge, lambda _: "")
    assert (found.before, found.changed_in, found.possible) == ("e", "f", ())
    assert asked["e"] == 3 and asked["d"] <= 2, "once more, and as one side of the change"


def failing(*ways: str) -> Bisection:
    """Of versions that all fail, each by what is given; empty where runs differ."""
    versions = [str(number) for number in range(len(ways))]
    return search(versions, lambda version: VersionOutcome("fail", by=ways[int(version)]), lambda _: "")


def test_where_both_ends_fail_in_different_ways_the_first_other_failure_is_named() -> None:
    found = failing("crash", "crash", "crash", "hang", "hang", "hang")
    assert (found.before, found.changed_in) == ("2", "3")
    assert failing("crash", "late", "hang").changed_in == "1", "any other failure is a change"


def test_where_both_ends_fail_alike_they_agree() -> None:
    for ways in (("hang", "late", "hang"), ("", "hang"), ("hang", "")):
        assert failing(*ways).changed_in is None
