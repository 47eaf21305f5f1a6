"""Applications in a simulation: code under test on hosts of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fakebrokers.errors import UsageError
from fakebrokers.simulation.hosts import Host, Process
from fakebrokers.simulation.tasks import close, in_order

if TYPE_CHECKING:
    from fakebrokers.simulation.loop import SimulationLoop

T = TypeVar("T")


class Application(Generic[T]):
    """An async function that runs on a host; made by `Simulation.start`.

    Attributes:
        host: Where.
        task: Its main task; a new one after each `restart`.
        history: When it was started and killed, and how it ended, for people.
    """

    task: asyncio.Task[T]

    def __init__(self, loop: SimulationLoop, host: Host, main: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.host = host
        self.processes: list[Process] = []
        self.history: list[tuple[float, str]] = []
        self._loop = loop
        self._main = main
        self._is_known = True  #: somebody knows how it ended
        self._ended: asyncio.Future[None] = loop.create_future()
        self._start()

    def __repr__(self) -> str:
        return f"<application on {self.host.name}, {'running' if self.runs else 'ended'}>"

    def _start(self) -> None:
        process = Process(self.host)
        context = process.context.copy()
        work = context.run(self._main)
        if not asyncio.iscoroutine(work):
            raise UsageError(f"expected an async function to start, got {self._main!r}, which gives {work!r}")
        self._note("starts")
        self.processes.append(process)
        if self._ended.done():
            self._ended = self._loop.create_future()
        self._is_known = False
        self.task = task = self._loop.create_task(work, name=self.host.name, context=context)
        outside = self._loop.network.outside.context
        task.add_done_callback(lambda _: self._end(task), context=outside)

    def _end(self, task: asyncio.Task[T]) -> None:
        if task is self.task:
            failed = None if task.cancelled() else task.exception()
            self._note(f"ends with {failed!r}" if failed is not None else "ends")
            self._say_ended()

    def _note(self, what: str) -> None:
        self.history.append((self._loop.time(), what))

    def _say_ended(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    @property
    def runs(self) -> bool:
        """Whether its main task goes on."""
        return not self.was_killed and not self.task.done()

    @property
    def was_killed(self) -> bool:
        """Whether it was, since it was last started."""
        return not self.processes[-1].alive

    def kill(self, *, for_good: bool = True) -> None:
        """End it as `kill -9` does: nothing of it is called any more, and its connections end.

        Its ``finally`` clauses run when the simulation has ended, at the earliest.

        Args:
            for_good: False: `restart` is going to follow, and `wait` waits for how that run ends.
        """
        process = self.processes[-1]
        if process.alive:
            mine = [task for task in in_order(asyncio.all_tasks(self._loop)) if task.process is process]
            self._loop.network.has_lost_a_process = True
            process.kill(list[asyncio.Task[object]](mine))
            self._note("is killed")
            self._is_known = self._is_known or not self.task.done()
        if for_good:
            self._say_ended()

    def restart(self) -> None:
        """Start it again on its host, with the same arguments; kill it before if it still runs."""
        if not self.was_killed:
            self.kill()
        self._start()

    async def wait(self) -> T | None:
        """What the function returned, once it has ended; None if it was killed.

        Raises:
            BaseException: What the function has raised.
        """
        await asyncio.wait([self._ended])
        self._is_known = True
        return self.task.result() if self.task.done() else None

    @property
    def failure(self) -> BaseException | None:
        """What it has raised, if no `wait` has raised it yet."""
        if self._is_known or not self.task.done() or self.task.cancelled():
            return None
        return self.task.exception()

    def bury(self) -> None:
        """The simulation is over: let go of what was running when it was killed."""
        for process in self.processes:
            for task in process.left:
                close(task)
            process.left.clear()
