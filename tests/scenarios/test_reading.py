"""How long a client that reads slowly is waited for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conformance.suite import Expect
from conformance.suite.expect import Inconclusive
from fakebrokers.core import virtual
from scenarios import _reading

COUNT, SIZE = 40, 1_000_000


class Reader:
    """A client that gets so many bytes a second, and surfaces all messages with the last one."""

    def __init__(self, pace: float) -> None:
        self.pace = pace

    def unread(self, _: object = None) -> int:
        return max(0, int(SIZE - self.pace * asyncio.get_running_loop().time()))

    async def wait_messages(self, count: int, sub: str, within_s: float) -> list[int]:
        await asyncio.sleep(min(within_s, self.unread() / self.pace))
        return [] if self.unread() else list(range(COUNT))


def read(monkeypatch: pytest.MonkeyPatch, pace: float) -> tuple[list[Any], float]:
    async def work() -> tuple[list[Any], float]:
        reader: Any = Reader(pace)
        monkeypatch.setattr(_reading, "unread_bytes", reader.unread)
        nobody: Any = None
        found = await _reading.read_to_the_end(nobody, reader, Expect(), COUNT, within_s=5.0)
        return found, asyncio.get_running_loop().time()

    return virtual.run(work())


def test_a_slow_client_gets_the_time_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    found, took = read(monkeypatch, SIZE / 40)
    assert len(found) == COUNT and took == pytest.approx(40, abs=1)


def test_one_that_will_not_be_through_in_time_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Inconclusive, match=r"reads slowly: 0 of 40 in 1\d s, and it reads on"):
        read(monkeypatch, SIZE / 600)
