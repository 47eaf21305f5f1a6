"""The order of delivery and the in-flight table."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.pzq.inflight import InFlight, slot_capacity
from fakebrokers.pzq.walk import RECORDED_RUNS, Rhythm, Walk

LARGE = 31_457_280


def add(walk: Walk, *places: int) -> None:
    for place in places:
        walk.add(b"%04d" % place, b"k%d" % place)


def steps(walk: Walk) -> list[int]:
    """The rest of this walk."""
    found = []
    while (waiting := walk.step()) is not None:
        found.append(int(waiting[0]))
    return found


def test_a_walk_goes_by_place() -> None:
    walk = Walk()
    add(walk, 3, 1, 2)
    assert len(walk) == 3
    assert steps(walk) == [1, 2, 3]
    assert len(walk) == 0


def test_what_comes_behind_the_cursor_waits_for_the_next_walk() -> None:
    walk = Walk()
    add(walk, 1, 2, 5)
    assert walk.step() == (b"0001", b"k1")
    assert walk.step() == (b"0002", b"k2")
    add(walk, 1, 2, 4)  # 2 is where the cursor stands
    assert steps(walk) == [4, 5]
    assert steps(walk) == [1, 2]


def test_rewind_makes_one_walk_of_both_sides() -> None:
    walk = Walk()
    add(walk, 2, 4)
    walk.step()
    add(walk, 1, 3)
    walk.rewind()
    assert steps(walk) == [1, 3, 4]


@given(st.lists(st.tuples(st.sampled_from(["add", "step", "rewind"]), st.integers(0, 30)), max_size=60))
def test_nothing_is_lost_and_nothing_comes_twice(acts: list[tuple[str, int]]) -> None:
    walk, waiting = Walk(), set()
    for act, place in acts:
        if act == "add" and place not in waiting:
            add(walk, place)
            waiting.add(place)
        elif act == "step":
            step = walk.step()
            if step is not None:
                waiting.remove(int(step[0]))
        elif act == "rewind":
            walk.rewind()
    assert len(walk) == len(waiting)
    assert set(steps(walk) + steps(walk)) == waiting


def test_the_rhythm_is_the_recorded_one_again_and_again() -> None:
    rhythm = Rhythm()
    for run in (*RECORDED_RUNS, *RECORDED_RUNS):
        assert [rhythm.full() for _ in range(run + 1)] == [False] * run + [True]
    rhythm.reset()
    assert [rhythm.full() for _ in range(6)] == [False] * 5 + [True]


def test_marks() -> None:
    table = InFlight(LARGE)
    assert table.add(b"a" * 53, 1.0) is None
    assert table.add(b"b" * 53, 2.0) is None
    assert (len(table), table.size, table.oldest) == (2, 202, 1.0)
    assert b"a" * 53 in table
    assert table.remove(b"a" * 53)
    assert not table.remove(b"a" * 53)
    assert (len(table), table.size) == (1, 101)
    table.clear()
    assert (len(table), table.size, table.oldest) == (0, 0, inf)


def test_a_mark_expires_when_it_is_older_than_the_timeout() -> None:
    table = InFlight(LARGE)
    for number in range(40):
        table.add(b"%d" % number, float(number))
    assert sorted(int(key) for key in table.expire(10.0, 5.0)) == list(range(5))
    assert sorted(int(key) for key in table) == list(range(5, 40))
    assert table.oldest == 5.0
    assert sorted(int(key) for key in table.expire(100.0, 5.0)) == list(range(5, 40))
    assert table.oldest == inf


def test_an_empty_table_remembers_no_time() -> None:
    table = InFlight(LARGE)
    table.add(b"a", 1.0)
    assert table.remove(b"a")
    table.add(b"b", 5.0)
    assert table.oldest == 5.0


@pytest.mark.parametrize(("size", "marks"), [(4096, 16), (8192, 48), (1, 0)])
def test_a_small_table_holds_few_marks(size: int, marks: int) -> None:
    table, lost = InFlight(size), []
    for number in range(2000):
        lost.append(table.add(b"%053d" % number, float(number)))
    assert len(table) == marks
    assert len([key for key in lost if key is not None]) == 2000 - marks
    assert table.size == marks * 101


def test_capacity_of_a_slot() -> None:
    """A 16th of the table, without its head and, where they fit, the slot's buckets."""
    assert slot_capacity(4096) == 133
    assert slot_capacity(LARGE) == 1_441_669
