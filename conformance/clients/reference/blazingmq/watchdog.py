"""Whether the broker lives: by what came in each interval, whatever it was."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.frames import HeartbeatRequest

if TYPE_CHECKING:
    from conformance.clients.reference.blazingmq.link import Link


class Watchdog:
    """Of one connection.

    Attributes:
        heard: Whether anything came since the last look.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self.heard = False
        self.task: asyncio.Task[None] | None = None

    def start(self, interval_s: float, most: int) -> None:
        """Begin to look, if the broker wants it."""
        if interval_s > 0 and most > 0:
            self.task = self.link.client.runtime.tasks.spawn(self.watch(interval_s, most))

    def came(self) -> None:
        """Something came."""
        self.heard = True

    async def watch(self, interval_s: float, most: int) -> None:
        """Ask a silent broker for a sign of life, and give it up after `most` silent intervals more."""
        missed = 0
        while self.link.state == "open":
            await asyncio.sleep(interval_s)
            if self.heard:
                missed = 0
            elif missed >= most:
                self.link.end(ClientError("connection", f"nothing came for {missed + 1} intervals"))
            else:
                missed += 1
                self.link.send(HeartbeatRequest())
            self.heard = False

    def end(self) -> None:
        """The connection is over."""
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()
