"""How many scenarios run at once."""

from __future__ import annotations

import asyncio

import pytest

from conformance.suite import limiter
from conformance.suite.limiter import LEAST, MOST, Limiter, width_here
from fakebrokers.core import virtual


def test_fewer_after_a_long_lag_more_where_all_places_are_taken() -> None:
    async def work() -> None:
        here = Limiter(16, 32, follows_lag=True)
        here.adapt(0.0)
        assert here.width == 16  # nobody waits for more
        here.inside = 16
        here.adapt(0.0)
        assert here.width == 18
        for _ in range(20):
            here.adapt(0.5)
        assert here.width == LEAST
        for _ in range(40):
            here.inside = here.width
            here.adapt(0.0)
        assert here.width == 32

    virtual.run(work())


def test_no_more_are_let_in_than_there_is_room_for() -> None:
    async def work() -> int:
        most = 0
        async with Limiter(3, 3, follows_lag=True) as here:

            async def stay() -> None:
                nonlocal most
                await here.enter()
                most = max(most, here.inside)
                await asyncio.sleep(1.0)
                here.leave()

            await asyncio.gather(*(stay() for _ in range(10)))
        return most

    assert virtual.run(work()) == 3


def test_who_comes_first_is_let_in_by_rank_and_who_has_left_the_queue_takes_no_place() -> None:
    async def work() -> list[str]:
        let_in: list[str] = []
        async with Limiter(1, 1, follows_lag=False) as here:

            async def come(name: str, rank: int) -> None:
                await here.enter(rank)
                let_in.append(name)
                await asyncio.sleep(1.0)
                here.leave()

            tasks = []
            for name, rank in (("inside", 9), ("second", 2), ("gone", 0), ("first", 1), ("third", 2)):
                tasks.append(asyncio.create_task(come(name, rank)))
                await asyncio.sleep(0.01)
            tasks[2].cancel()
            await asyncio.wait(tasks)
            assert here.inside == 0
        return let_in

    assert virtual.run(work()) == ["inside", "first", "second", "third"]


def test_who_is_cancelled_in_the_moment_of_being_let_in_takes_no_place() -> None:
    async def work() -> int:
        async with Limiter(1, 1, follows_lag=False) as here:
            await here.enter()
            waiting = asyncio.create_task(here.enter())
            await asyncio.sleep(0.01)
            here.leave()
            waiting.cancel()
            await asyncio.wait({waiting})
            return here.inside

    assert virtual.run(work()) == 0


@pytest.mark.parametrize(
    ("cores", "load", "width"), [(4, 0.1, MOST), (2, 0.1, 16), (4, 9.0, MOST // 2), (1, 9.0, LEAST)]
)
def test_the_machine_says_with_how_many_to_begin(
    cores: int, load: float, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter.os, "cpu_count", lambda: cores)
    monkeypatch.setattr(limiter.os, "getloadavg", lambda: (load, load, load))
    assert width_here() == width
