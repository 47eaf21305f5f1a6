"""What a loop is going to call: asyncio's handles, where debug mode is off.

A run makes some for each frame, and asyncio's own ask each time whether they have to note who asked for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any


class Handle(asyncio.Handle):
    """A callback."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = copy_context() if context is None else context
        self._cancelled = False
        self._repr = self._source_traceback = None


class TimerHandle(asyncio.TimerHandle):
    """A callback for later; its time is set by who makes it."""

    __slots__ = ()
    __init__ = Handle.__init__  # it sets what both have
