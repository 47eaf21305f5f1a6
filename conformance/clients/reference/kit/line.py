"""Who began first goes on first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class WaitQueue:
    """Keeps those who wait in the order in which they began.

    What several wait for (a connection, a declaration) is there one moment before they go on: the loop wakes
    them one after the other. A caller that asks in that moment finds it there, and without a line would
    overtake them all.
    """

    def __init__(self) -> None:
        self._last: asyncio.Future[None] | None = None

    async def after(self, ready: Awaitable[T]) -> T:
        """What `ready` gives, but not before those who began earlier have theirs, or have given up.

        The caller keeps its place up to its next await.
        """
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        before, self._last = self._last, gone
        try:
            found = await ready
            if before is not None and not before.done():
                await asyncio.wait([before])
            return found
        finally:
            if before is None or before.done():
                gone.set_result(None)
            else:  # it gives up, and those after it still wait for those in front of it
                before.add_done_callback(lambda _: gone.set_result(None))
