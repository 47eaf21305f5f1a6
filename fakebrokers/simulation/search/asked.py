"""A worker, as the process sees it that asks it for runs."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from fakebrokers.errors import FakeBrokerError, UsageError
from fakebrokers.simulation.search.run import Outcome
from fakebrokers.simulation.search.schedule import hash_seed
from fakebrokers.simulation.search.worker import Answer, Setting, Wish

_LINE_MAX = 1 << 28


class Asked:
    """A worker, as the campaign sees it.

    Args:
        hears: Called with each of its answers.
    """

    def __init__(self, process: Process, hears: Callable[[Answer], None]) -> None:
        self._process = process
        self._hears = hears

    async def ask(self, wish: Wish) -> Outcome:
        """Run something.

        Raises:
            UsageError: It cannot be run.
        """
        self.send(wish)
        return await self.answer()

    def send(self, line: Setting | Wish) -> None:
        """Say a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(line) + b"\n")

    async def answer(self) -> Outcome:
        """What it answers."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise FakeBrokerError("a worker of the simulation has ended; its last output is above")
        answer = msgspec.json.decode(line, type=Answer)
        if answer.outcome is None:
            raise UsageError(answer.problem)
        self._hears(answer)
        return answer.outcome


@asynccontextmanager
async def worker_for(seed: int, hears: Callable[[Answer], None]) -> AsyncIterator[Asked]:
    """A worker for seeds that have the same order of sets of strings as this one; it ends with the block.

    Args:
        hears: Called with each of its answers.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "fakebrokers.simulation.search.worker",
        stdin=PIPE,
        stdout=PIPE,
        limit=_LINE_MAX,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed(seed))},
        start_new_session=True,  # Ctrl-C is for the command, which ends it
    )
    try:
        yield Asked(process, hears)
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, 9)  # the run that goes on, too
            await process.wait()
