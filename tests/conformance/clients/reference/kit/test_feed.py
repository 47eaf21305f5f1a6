"""Serial delivery: one callback at a time, in order, and an end that does not wait for itself."""

from __future__ import annotations

import asyncio

import pytest

from conformance.clients.reference.kit import Feed, Memory, Runtime
from fakebrokers.core import virtual


def test_one_after_the_other_in_order() -> None:
    async def work() -> None:
        seen: list[str] = []

        async def handle(item: int) -> None:
            seen.append(f"begin {item}")
            await asyncio.sleep(3 - item)
            seen.append(f"end {item}")

        feed = Feed(Runtime(Memory()).feeds, handle)
        for item in (1, 2):
            feed.put(item)
        await feed.drained()
        assert seen == ["begin 1", "end 1", "begin 2", "end 2"]
        feed.put(1)
        await asyncio.sleep(0.5)  # its callback runs
        await feed.drained()
        assert seen[4:] == ["begin 1", "end 1"]
        feed.abort()

    virtual.run(work())


def test_the_end_handles_what_waits_and_is_waited_for() -> None:
    async def work() -> None:
        runtime, seen = Runtime(Memory()), []

        async def handle(item: int) -> None:
            await asyncio.sleep(1.0)
            seen.append(item)

        feed = Feed(runtime.feeds, handle)
        feed.put(1)
        feed.put(2)
        feed.end()
        await feed.ended(0.5)
        assert seen == []
        await feed.ended()
        assert seen == [1, 2]
        await asyncio.sleep(0)
        assert not runtime.feeds

    virtual.run(work())


def test_cleared_items_are_not_handled() -> None:
    async def work() -> None:
        seen = []

        async def handle(item: int) -> None:
            seen.append(item)

        feed = Feed(Runtime(Memory()).feeds, handle)
        feed.put(1)
        assert list(feed) == [1]
        feed.clear()
        await asyncio.wait_for(feed.drained(), 1.0)
        assert (seen, len(feed)) == ([], 0)
        feed.abort()

    virtual.run(work())


def test_a_callback_does_not_wait_for_its_own_end() -> None:
    async def work() -> None:
        ended_at = []

        async def handle(item: int) -> None:
            feed.end()
            await feed.ended()
            ended_at.append(asyncio.get_running_loop().time())

        feed = Feed(Runtime(Memory()).feeds, handle)
        begun = asyncio.get_running_loop().time()
        feed.put(1)
        await asyncio.wait_for(feed.ended(), 10.0)
        assert ended_at == [pytest.approx(begun)]

    virtual.run(work())


def test_the_end_of_the_runtime_ends_a_callback_that_runs() -> None:
    async def work() -> None:
        runtime = Runtime(Memory())

        async def handle(item: int) -> None:
            await asyncio.sleep(3600)

        Feed(runtime.feeds, handle).put(1)
        await asyncio.sleep(0.1)
        assert runtime.task_count == 1
        runtime.end()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert runtime.task_count == 0

    virtual.run(work())
