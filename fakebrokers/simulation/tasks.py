"""Tasks and futures whose hashes repeat, so that sets of them have the same order in each run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from fakebrokers.simulation.hosts import Process

T = TypeVar("T")


class SimulatedFuture(asyncio.Future[T]):
    """A future; `number` says how many tasks, futures and timers of its loop came before."""

    __slots__ = ("number",)
    number: int

    def __hash__(self) -> int:
        return self.number


class SimulatedTask(asyncio.Task[T]):
    """A task, of a process; `number` as that of futures."""

    __slots__ = ("number", "process")

    def __init__(self, work: Coroutine[Any, Any, T], number: int, process: Process, **options: Any) -> None:
        self.number = number  # before asyncio puts it into a set
        self.process = process
        super().__init__(work, **options)

    def __hash__(self) -> int:
        return self.number

    def forget(self) -> None:
        """It never ends, and that is no mistake."""
        self._log_destroy_pending = False


def in_order(tasks: set[asyncio.Task[Any]]) -> list[SimulatedTask[Any]]:
    """Tasks in the order in which they were made."""
    return sorted((each for each in tasks if isinstance(each, SimulatedTask)), key=lambda each: each.number)


def close(task: asyncio.Task[Any]) -> None:
    """Close a task's coroutine, whose ``finally`` clauses may wait no more."""
    assert isinstance(task, SimulatedTask)
    task.forget()
    work = task.get_coro()
    try:
        if work is not None:
            work.close()
    except Exception:  # what it tries there has nothing to act on
        return


def close_what_generators_await(loop: asyncio.AbstractEventLoop) -> None:
    """Close the coroutines in which asynchronous generators wait, while the loop is not closed.

    Closing a task leaves them alone (before Python 3.13); what they do at their end would fail later.
    """
    for generator in tuple(loop._asyncgens):  # type: ignore[attr-defined] # of asyncio's base class
        if isinstance(generator.ag_await, Coroutine):
            with suppress(Exception):
                generator.ag_await.close()
