"""Clients in real time: many runs side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Generic, NamedTuple, TypeVar

SIDE_BY_SIDE = 10  #: runs at once: they wait most of the time
LOOK_S = 0.2  #: so often somebody looks whether the runs are to end; Ctrl-C is heard within that time

P = TypeVar("P")  # a plan
R = TypeVar("R")  # a run of one, judged


def side_by_side(
    run: Callable[[P], Awaitable[R]], plans: Iterable[P], lanes: int, is_over: Callable[[], bool]
) -> Iterator[R]:
    """Run plans on a loop in a thread; what they come to, as they end. Who stops to read ends the runs.

    Args:
        lanes: How many runs at once.
        is_over: Whether no further plan is begun.
    """
    side = _Side(run, iter(plans), lanes, is_over)
    side.thread.start()
    try:
        while True:
            try:
                found = side.found.get(timeout=LOOK_S)
            except Empty:
                continue
            if found is None:
                return
            if isinstance(found, BaseException):
                raise found
            yield found.run
    finally:
        side.stop()


class _Ended(NamedTuple, Generic[R]):
    run: R


class _Side(Generic[P, R]):
    """The thread with its loop."""

    def __init__(
        self, run: Callable[[P], Awaitable[R]], plans: Iterator[P], lanes: int, is_over: Callable[[], bool]
    ) -> None:
        self._run_one = run
        self._plans = plans
        self._lanes = lanes
        self._is_over = is_over
        self._stopped = Event()
        self.found: SimpleQueue[_Ended[R] | BaseException | None] = SimpleQueue()
        self.thread = Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self.found.put(error)
        else:
            self.found.put(None)

    async def _work(self) -> None:
        tasks = [asyncio.create_task(self._worker()) for _ in range(self._lanes)]
        watch = asyncio.create_task(self._cancel_when_stopped(tasks))
        await asyncio.gather(*tasks)
        watch.cancel()

    async def _worker(self) -> None:
        for plan in self._plans:
            if self._is_over():
                return
            self.found.put(_Ended(await self._run_one(plan)))

    async def _cancel_when_stopped(self, tasks: list[asyncio.Task[None]]) -> None:
        while not self._stopped.is_set():
            await asyncio.sleep(LOOK_S)
        for task in tasks:
            task.cancel()

    def stop(self) -> None:
        """End the runs that go on."""
        self._stopped.set()
        self.thread.join(timeout=10.0)
