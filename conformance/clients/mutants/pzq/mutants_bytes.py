"""Producers that cannot bear a slow network or a busy broker."""

from __future__ import annotations

import asyncio

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.pzq.producer import Answer, Producer
from conformance.clients.reference.pzq.sockets import Parts

Waiting = asyncio.Future[Answer]


@mutant("slow-is-lost", tag="life-cycle", breaks=["X1", "X4"], aims=["NET-1.08", "NET-1.11"])
class SlowIsLost(Producer):
    """Takes the broker for lost when an acknowledgement needs longer than a second and a half."""

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        loop = asyncio.get_running_loop()
        lost = ClientError("connection", "the broker is lost")
        alarm = loop.call_later(1.5, self.runtime.callbacks.trouble, "other", lost)
        try:
            return await super().acknowledged(message, waiting, timeout)
        finally:
            alarm.cancel()


@mutant("repeats-at-once", tag="data", breaks=["X1"], aims=["NET-1.10"])
class RepeatsAtOnce(Producer):
    """Sends a message again when its acknowledgement needs longer than a quarter of a second."""

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        again = asyncio.get_running_loop().call_later(0.25, self.repeat, message)
        try:
            return await super().acknowledged(message, waiting, timeout)
        finally:
            again.cancel()
