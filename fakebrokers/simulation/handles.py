"""What a loop is going to call: asyncio's handles, where debug mode is off.

A run makes some for each frame, and asyncio's own ask each time whether they have to note who asked for them.
The loop makes these by hand: to call an `__init__` for each of them would cost as much as all the rest.
"""

from __future__ import annotations

import asyncio
from typing import Any


class _Light:
    """What handles have in common; one without a callback was cancelled."""

    __slots__ = ()
    _callback: Any
    _args: Any
    _loop: Any
    _context: Any
    _repr = _source_traceback = None  # of debug mode
    _cancelled: Any = property(lambda self: self._callback is None)

    def cancel(self) -> None:
        self._callback = self._args = None


class Handle(_Light, asyncio.Handle):
    """A callback."""

    __slots__ = ()


class TimerHandle(_Light, asyncio.TimerHandle):
    """A callback for later."""

    __slots__ = ()
    _when: float
    _scheduled: bool

    def cancel(self) -> None:
        if self._callback is not None:
            self._loop._timer_cancelled_count += self._scheduled
            self._callback = self._args = None


class Raising:
    """In place of a handle's context: what its callback has raised, for asyncio to report."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def run(self, *_: object) -> None:
        """Raise it."""
        raise self._error
