"""The heap of timers: against a plain model, and what it holds on to."""

from __future__ import annotations

import gc
import math
import weakref

from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.timers import STALE_LIMIT, Timers

MOVES = st.lists(
    st.tuples(st.sampled_from(["set", "cancel", "drop", "run"]), st.integers(0, 4), st.integers(0, 20)),
    max_size=60,
)


@given(MOVES)
def test_each_timer_is_called_once_at_its_last_deadline(moves: list[tuple[str, int, int]]) -> None:
    timers = Timers()
    called: list[int] = []
    made = [timers.new(lambda now, number=number: called.append(number)) for number in range(5)]  # type: ignore[misc]
    due: dict[int, int] = {}
    dropped: set[int] = set()
    for what, number, value in moves:
        if what == "set":
            made[number].set(value)
            if number not in dropped:
                due[number] = value
        elif what == "cancel":
            made[number].cancel()
            due.pop(number, None)
        elif what == "drop":
            made[number].drop()
            dropped.add(number)
            due.pop(number, None)
        else:
            called.clear()
            timers.run(value)
            expected = {each for each, at in due.items() if at <= value}
            assert sorted(called) == sorted(expected)
            assert [due[each] for each in called] == sorted(due[each] for each in called)
            due = {each: at for each, at in due.items() if each not in expected}
        assert timers.next_due == min(due.values(), default=math.inf)


def test_those_of_one_deadline_are_called_in_the_order_in_which_they_were_set() -> None:
    timers = Timers()
    called: list[str] = []
    for name in "abc":
        timers.new(lambda now, name=name: called.append(name)).set(1.0)  # type: ignore[misc]
    timers.run(1.0)
    assert called == ["a", "b", "c"]


def test_one_that_sets_itself_to_now_leaves_the_others_their_turn() -> None:
    timers = Timers()
    called: list[str] = []

    def again(now: float) -> None:
        called.append("again")
        timer.set(now)

    timer = timers.new(again)
    timer.set(1.0)
    timers.new(lambda now: called.append("other")).set(2.0)
    timers.run(2.0)
    assert called == ["again", "other"]
    timers.run(2.0)
    assert called == ["again", "other", "again"]


def test_putting_a_deadline_off_costs_nothing() -> None:
    timers = Timers()
    timer = timers.new(lambda now: None)
    for now in range(10_000):
        timer.set(now + 60.0)
    assert len(timers) == 1
    assert timers.next_due == 9_999 + 60.0


class Owner:
    def act(self, now: float) -> None:
        raise AssertionError("its owner is gone")


def test_a_dropped_timer_holds_on_to_nothing_and_leaves_the_heap() -> None:
    timers = Timers()
    owner = Owner()
    gone = weakref.ref(owner)
    timer = timers.new(owner.act, owner)
    timer.set(60.0)
    del owner
    timer.drop()
    gc.collect()
    assert gone() is None
    timer.set(1.0)
    timers.run(100.0)
    for _ in range(3 * STALE_LIMIT):
        timer = timers.new(lambda now: None)
        timer.set(1e9)
        timer.drop()
    assert len(timers) <= STALE_LIMIT + 1
