"""Clients in real time: runs side by side on a loop of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from conformance.search.live import side_by_side


async def squared(number: int) -> int:
    await asyncio.sleep(0)
    return number * number


def test_every_plan_is_run_once_however_many_lanes_there_are() -> None:
    for lanes in (1, 3, 20):
        assert sorted(side_by_side(squared, range(10), lanes, lambda: False)) == [n * n for n in range(10)]


def test_as_many_runs_go_on_as_there_are_lanes() -> None:
    going, most = 0, 0

    async def run(number: int) -> int:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await asyncio.sleep(0)
        going -= 1
        return number

    assert len(list(side_by_side(run, range(9), 3, lambda: False))) == 9
    assert most == 3


def test_no_plan_is_taken_once_the_time_is_over() -> None:
    taken: list[int] = []

    def plans() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    done = list(side_by_side(squared, plans(), 1, lambda: len(taken) > 5))
    assert len(done) == 5  # the sixth was taken from the list, and not begun
    assert len(taken) == 6


def test_an_error_of_a_run_reaches_who_reads() -> None:
    async def run(number: int) -> int:
        raise ValueError(f"plan {number}")

    with pytest.raises(ValueError, match="plan 7"):
        list(side_by_side(run, [7], 1, lambda: False))


def test_who_stops_to_read_ends_the_runs_that_go_on() -> None:
    ended: list[str] = []

    async def run(number: int) -> int:
        if number:
            try:
                await asyncio.Event().wait()  # for ever
            except asyncio.CancelledError:
                ended.append(f"plan {number}")
                raise
        return number

    runs = side_by_side(run, [0, 1, 2], 3, lambda: False)
    assert next(runs) == 0
    runs.close()  # type: ignore[attr-defined]
    assert sorted(ended) == ["plan 1", "plan 2"]
