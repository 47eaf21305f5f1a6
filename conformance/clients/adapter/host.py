"""The host of a simulation on which a client runs, with harness and fakes on the same loop but elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fakebrokers.simulation import SimulationLoop
from fakebrokers.simulation.hosts import PROCESS, Process
from fakebrokers.simulation.tasks import SimulatedTask, close, in_order

T = TypeVar("T")

NAME = "client"


class ClientHost:
    """Tells apart what is the client's and what is not; implements `belongings.Belongings`.

    Whatever the client begins runs in its process, because tasks, callbacks and timers take that from whoever
    makes them. What it leaves at the end of a run is its own.
    """

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop
        self._former: list[Process] = []
        self._process: Process | None = None

    def begin(self) -> None:
        """A process of the client begins."""
        self._process = Process(self._loop.network.host(NAME))

    def run(self, act: Callable[..., T], *arguments: Any) -> T:
        """Let the client do something."""
        assert self._process is not None
        return self._process.context.copy().run(act, *arguments)

    def tasks(self) -> set[asyncio.Task[Any]]:
        return {task for task in asyncio.all_tasks(self._loop) if self._is_of(task)}

    def _is_of(self, task: asyncio.Task[Any]) -> bool:
        return isinstance(task, SimulatedTask) and task.process is self._process

    def drop(self) -> None:
        for transport in tuple(self._loop.transports):
            if getattr(transport, "process", None) is self._process:
                transport.abort()

    def kill(self) -> None:
        """End the process as `kill -9` does: its connections end, and nothing of it is called any more."""
        if self._process is not None:
            self._loop.network.has_lost_a_process = True
            self._process.kill(list(in_order(self.tasks())))
            self._former.append(self._process)
            self._process = None

    def bury(self) -> None:
        """The run is over: let go of what was under way when a process was killed."""
        for process in self._former:
            for task in process.left:
                close(task)
            process.left.clear()

    def has_caused(self, context: Mapping[str, Any]) -> bool:
        """Whether it is the client's code of which the loop's handler of exceptions is told."""
        for what in ("task", "future"):
            owner = getattr(context.get(what), "process", None)
            if owner is not None:
                return self._is_own(owner)
        handle = context.get("handle")
        owner = None if handle is None else handle._context.get(PROCESS)
        return self._is_own(owner or self._loop.network.here())

    def _is_own(self, process: Process) -> bool:
        return process is self._process or process in self._former
