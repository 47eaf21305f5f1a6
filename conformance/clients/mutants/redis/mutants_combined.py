"""Defects where two things meet: two ends."""

from __future__ import annotations

import asyncio

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.redis.client import RedisClient, Subscription


@mutant("ends-take-turns", tag="life-cycle", breaks=["X7"])
class RedisEndsTakeTurns(RedisClient):
    """Closes only when the server has answered each unsubscribe."""

    def _turn(self) -> asyncio.Lock:
        turn: asyncio.Lock = self.__dict__.setdefault("turn", asyncio.Lock())
        return turn

    async def unsubscribe(self, subscription: Subscription, timeout: float | None = None) -> None:
        async with self._turn():
            await super().unsubscribe(subscription, timeout)

    async def close(self, timeout: float | None = None) -> None:
        async with self._turn():
            await super().close(timeout)
