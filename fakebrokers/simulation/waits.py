"""Locks and queues of threads, where code in a simulation makes them.

There are no threads that could let a lock go or fill a queue: who would wait for one waits for ever. What is
free, or filled already, is had at once, as everywhere.
"""

from __future__ import annotations

import _thread
import queue
import threading
from asyncio import _get_running_loop
from collections.abc import Callable
from types import TracebackType
from typing import Any

_real_lock: Callable[[], Any] = threading.Lock
_real_queue: Any = queue.SimpleQueue

#: What modules have, by key; see `exchanges`.
REAL: dict[str, Any] = {
    "lock": _real_lock,
    "lock of others": _thread.allocate_lock,  # from Python 3.13 on not the same as threading.Lock
    "queue": _real_queue,
}


_LOCK: Any = type(_real_lock())
_IN_PYTHON: Any = queue._PySimpleQueue  # type: ignore[attr-defined] # it waits as locks do


class _Like(type):
    """Makes `isinstance` go by the real class, too."""

    _real: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, cls._real)


def exchanges(is_simulated: Callable[[object], bool], refuse: Callable[[], object]) -> dict[str, Any]:
    """What modules have instead while a simulation runs, by key.

    Args:
        is_simulated: Whether a running loop is one of a simulation.
        refuse: Raises where the running code would wait, if it is in a simulation.
    """

    class SimulatedLock(metaclass=_Like):
        """`threading.Lock`, which also `threading.Condition` waits with, and what is made of that."""

        _real = _LOCK

        def __new__(cls) -> Any:
            return super().__new__(cls) if is_simulated(_get_running_loop()) else _real_lock()

        def __init__(self) -> None:
            self._lock = _real_lock()

        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
            if self._lock.acquire(False):
                return True
            if blocking and timeout != 0:
                refuse()
            return bool(self._lock.acquire(blocking, timeout))

        def release(self) -> None:
            self._lock.release()

        def locked(self) -> bool:
            return bool(self._lock.locked())

        def _at_fork_reinit(self) -> None:
            self._lock._at_fork_reinit()

        def __enter__(self) -> bool:
            return self.acquire()

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            self.release()

    class SimulatedQueue(_IN_PYTHON, metaclass=_Like):  # type: ignore[misc] # of no known type
        """`queue.SimpleQueue`."""

        _real = _real_queue

        def __new__(cls) -> Any:
            return super().__new__(cls) if is_simulated(_get_running_loop()) else _real_queue()

    return {"lock": SimulatedLock, "lock of others": SimulatedLock, "queue": SimulatedQueue}
