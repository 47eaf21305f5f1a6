"""Virtual time passes only when everything waits."""

from __future__ import annotations

import asyncio

import pytest

from fakebrokers.core.virtual import VirtualLoop, run


def test_hours_take_no_time() -> None:
    async def work() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert run(work()) == pytest.approx(3600)  # more than the patience of pytest-timeout


def test_who_stands_still_finds_all_timers_due() -> None:
    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        seen: list[str] = []
        for name, pause in (("b", 2.0), ("a", 1.0), ("c", 9.0)):
            loop.call_later(pause, seen.append, name)
        loop.stand_still(5.0)
        assert (loop.time(), seen) == (5.0, [])
        await asyncio.sleep(0)
        assert loop.time() == 5.0
        return seen

    assert run(work()) == ["a", "b"]


def test_order_of_timers() -> None:
    async def work() -> list[tuple[float, str]]:
        loop = asyncio.get_running_loop()
        seen: list[tuple[float, str]] = []

        async def one(name: str, *pauses: float) -> None:
            for pause in pauses:
                await asyncio.sleep(pause)
                seen.append((round(loop.time(), 9), name))

        await asyncio.gather(one("a", 0.3, 0.3), one("b", 0.1, 0.1, 0.15), one("c", 0.7))
        return seen

    assert run(work()) == [(0.1, "b"), (0.2, "b"), (0.3, "a"), (0.35, "b"), (0.6, "a"), (0.7, "c")]


def test_timeouts() -> None:
    async def work() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 1000)

    run(work())


def test_a_deadlock_is_an_error_not_a_hang() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="deadlock on virtual time"):
        run(work())


def test_timers_come_late_where_the_process_stood_still() -> None:
    async def work() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.call_soon(loop.stand_still, 5.0)
        await asyncio.sleep(1.0)
        return loop.time()

    assert run(work()) == 5.0
