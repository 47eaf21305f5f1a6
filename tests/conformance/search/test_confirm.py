"""What virtual time has shown is asked of real time: once for each plan, the first of each name first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import pytest

from conformance.search.confirm import TRIES, confirm_all
from conformance.search.shrink import Shrinkable, Simpler
from fakebrokers.core import virtual

Run = tuple[str, ...]  # what it shows


def none_simpler(_: str) -> Iterator[str]:
    return iter(())


class Plans:
    """Plans that show what they are said to, at each of their runs; each takes a second."""

    def __init__(self, shown: Mapping[str, list[Run]]) -> None:
        self.shown = shown
        self.begun: list[str] = []

    async def run(self, plan: str) -> Run:
        runs = self.shown[plan]
        run = runs[min(self.begun.count(plan), len(runs) - 1)]
        self.begun.append(plan)
        await asyncio.sleep(1)
        return run

    def ask(self, wishes: list[tuple[str, str]], lanes: int, seconds: float) -> list[tuple[Run | None, bool]]:
        plans = Shrinkable(self.run, lambda run, name: name in run, Simpler(none_simpler, str, 1))
        return [(one.last, one.is_shown) for one in virtual.run(confirm_all(wishes, plans, lanes, seconds))]


def test_one_run_answers_all_that_a_plan_was_to_show() -> None:
    plans = Plans({"p": [("lost", "doubled")]})
    assert plans.ask([("p", "lost"), ("p", "doubled")], 4, 60) == [(("lost", "doubled"), True)] * 2
    assert plans.begun == ["p"]


def test_what_is_not_shown_is_asked_again() -> None:
    plans = Plans({"p": [("lost",), ("doubled",)]})
    assert plans.ask([("p", "lost"), ("p", "doubled")], 4, 60) == [(("lost",), True), (("doubled",), True)]
    assert plans.begun == ["p", "p"]


def test_what_is_never_shown() -> None:
    plans = Plans({"p": [("other",)]})
    assert plans.ask([("p", "lost")], 4, 60) == [(("other",), False)]
    assert plans.begun == ["p"] * TRIES


@pytest.mark.parametrize("seconds", [0.0, 1.5])
def test_the_first_of_each_name_comes_first_and_time_has_an_end(seconds: float) -> None:
    plans = Plans({plan: [(name,)] for plan, name in ("aa", "ba", "cb")})
    found = plans.ask([("a", "a"), ("b", "a"), ("c", "b")], 1, seconds)
    assert plans.begun == (["a", "c"] if seconds else [])
    assert [last is not None for last, _ in found] == [bool(seconds), False, bool(seconds)]
