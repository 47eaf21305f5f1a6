"""Defects where two things meet: options of one op, two ends."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient


@mutant("ends-take-turns", tag="life-cycle", breaks=["N15", "X7"])
class NarconiEndsTakeTurns(Subscription):
    """Closes a subscription only when its drain has ended, which waits for acknowledgements."""

    def _turn(self) -> asyncio.Lock:
        turn: asyncio.Lock = self.__dict__.setdefault("turn", asyncio.Lock())
        return turn

    async def drain(self) -> None:
        async with self._turn():
            await super().drain()

    async def close(self) -> None:
        async with self._turn():
            await super().close()


@mutant("limits-only-with-acknowledgements", tag="wire", breaks=["N11"])
class LimitsOnlyWithAcknowledgements(NarconiClient):
    """Leaves out the limit of a subscription with an encoding and without acknowledgements."""

    async def subscribe(self, queue: str, callback: Any, **options: Any) -> Any:
        if options.get("encoding") is not None and not options.get("ack"):
            options["limit"] = None
        return await super().subscribe(queue, callback, **options)
