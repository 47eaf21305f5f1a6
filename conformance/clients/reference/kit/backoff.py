"""Making again what was lost, with growing pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from conformance.clients.reference.kit.errors import ClientError

T = TypeVar("T")

#: How often a pause is doubled at most: it has long reached its limit then.
DOUBLINGS = 64


class Backoff:
    """The pauses between the attempts at one thing.

    Args:
        first_s, longest_s: Pause before the first attempt, and the limit to which it is doubled; each pause
            is drawn from 0.5 to 1.5 times that, so that many clients do not come in step.

    Attributes:
        failures: Attempts in a row that have failed.
    """

    def __init__(self, random: Random, first_s: float, longest_s: float) -> None:
        self.random = random
        self.first_s = first_s
        self.longest_s = longest_s
        self.failures = 0

    @property
    def grown_s(self) -> float:
        """The pause before chance changes it."""
        doubled = min(
            self.failures, DOUBLINGS
        )  # no number is too large for a float, however long it has failed
        return min(self.first_s * 2.0**doubled, self.longest_s)

    def delay(self) -> float:
        """Seconds before the next attempt."""
        return self.grown_s * self.random.uniform(0.5, 1.5)

    async def pause(self) -> None:
        """Wait before the next attempt, which counts as failed until `reset`."""
        await asyncio.sleep(self.delay())
        self.failures += 1

    async def retry(self, again: Callable[[], Awaitable[T]], is_final: Callable[[ClientError], bool]) -> T:
        """Try until it works. Raises the `ClientError` that is final."""
        while True:
            await self.pause()
            try:
                return await again()
            except ClientError as error:
                if is_final(error):
                    raise

    def reset(self) -> None:
        """It has worked for long enough: begin with the first pause again."""
        self.failures = 0
