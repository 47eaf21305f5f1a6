"""What is the library's own on a loop, and ends with ``reset``."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from .helpers import drop_sockets


class Belongings(Protocol):
    """What the library has on the loop."""

    def tasks(self) -> set[asyncio.Task[Any]]:
        """Its tasks, and those of the adapter for it."""

    def drop(self) -> None:
        """Cut its connections."""


class WholeProcess:
    """In a process of its own everything is the library's but the tasks that were there before it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._before = set(asyncio.all_tasks())

    def tasks(self) -> set[asyncio.Task[Any]]:
        return asyncio.all_tasks() - self._before

    def drop(self) -> None:
        drop_sockets(self._loop)
