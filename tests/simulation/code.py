"""Code that runs in simulations."""

from __future__ import annotations

import asyncio


async def pause(seconds: float) -> None:
    await asyncio.sleep(seconds)


class Stock:
    """With a race: who takes the last piece has looked whether there is one, and gone on later."""

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces

    async def take(self, prepare: int) -> bool:
        """After so many turns of the loop."""
        for _ in range(prepare):
            await asyncio.sleep(0)
        if self.pieces < 1:
            return False
        await asyncio.sleep(0)
        self.pieces -= 1
        return True
