"""Who began first goes on first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from conformance.clients.reference.kit import WaitQueue


async def _go(line: WaitQueue, ready: Awaitable[None], name: str, gone: list[str]) -> None:
    await line.after(ready)
    gone.append(name)


async def _nothing() -> None:
    """It is there already."""


@pytest.mark.parametrize("turns", range(6))
def test_whoever_comes_as_it_is_ready_overtakes_nobody(turns: int) -> None:
    async def work() -> list[str]:
        line, gone = WaitQueue(), []
        opened = asyncio.get_running_loop().create_future()
        tasks = [asyncio.create_task(_go(line, asyncio.shield(opened), name, gone)) for name in "ab"]
        await asyncio.sleep(0)
        opened.set_result(None)
        for _ in range(turns):
            await asyncio.sleep(0)
        await asyncio.gather(_go(line, _nothing(), "c", gone), *tasks)
        return gone

    assert asyncio.run(work()) == ["a", "b", "c"]


def test_one_that_gives_up_lets_those_behind_it_wait_for_those_in_front() -> None:
    async def work() -> list[str]:
        line, gone = WaitQueue(), []
        first, second = (asyncio.get_running_loop().create_future() for _ in range(2))
        one = asyncio.create_task(_go(line, first, "a", gone))
        two = asyncio.create_task(_go(line, second, "b", gone))
        three = asyncio.create_task(_go(line, _nothing(), "c", gone))
        await asyncio.sleep(0)
        two.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert gone == []
        first.set_result(None)
        await asyncio.gather(one, three)
        return gone

    assert asyncio.run(work()) == ["a", "c"]


def test_an_error_is_that_of_the_one_who_waits() -> None:
    async def work() -> None:
        line, gone = WaitQueue(), []
        failing = asyncio.get_running_loop().create_future()
        failing.set_exception(OSError("no"))
        with pytest.raises(OSError, match="no"):
            await _go(line, failing, "a", gone)
        await _go(line, _nothing(), "b", gone)
        assert gone == ["b"]

    asyncio.run(work())
