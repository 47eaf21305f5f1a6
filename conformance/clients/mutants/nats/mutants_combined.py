"""Defects where two things meet: options of one op, two ends."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.nats.client import NatsClient
from conformance.clients.reference.nats.listener import Listener


@mutant("ends-take-turns", tag="life-cycle", breaks=["X7"])
class NatsEndsTakeTurns(NatsClient):
    """Closes only when the drains have ended, which wait for answers."""

    def _turn(self) -> asyncio.Lock:
        turn: asyncio.Lock = self.__dict__.setdefault("turn", asyncio.Lock())
        return turn

    async def unsubscribe(self, listener: Listener, *, drain: bool, timeout: float | None) -> None:
        async with self._turn():
            await super().unsubscribe(listener, drain=drain, timeout=timeout)

    async def close(self, timeout: float | None) -> None:
        async with self._turn():
            await super().close(timeout)


@mutant("limited-members-are-alone", tag="data", breaks=["S4"])
class LimitedMembersAreAlone(NatsClient):
    """Leaves out the queue group of a subscription that ends by itself."""

    async def subscribe(
        self, subject: str, deliver: Any, timeout: float | None = None, **options: Any
    ) -> Listener:
        if options.get("limit"):
            options["queue"] = ""
        return await super().subscribe(subject, deliver, timeout, **options)
