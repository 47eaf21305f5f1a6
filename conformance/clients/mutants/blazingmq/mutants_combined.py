"""Defects where two things meet: options of one op, two ends."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.queues import LIMITS, Queue, Queues


@mutant("ends-take-turns", tag="life-cycle", breaks=["B18", "X7"])
class BlazingEndsTakeTurns(BlazingClient):
    """Closes only when the broker has answered each close of a queue."""

    async def close(self, timeout: float | None = None) -> None:
        for queue in tuple(self.queues.by_name.values()):
            async with queue.shutting:
                pass
        await super().close(timeout)


@mutant("limits-of-bytes-have-no-priority", tag="wire", breaks=["B4", "B11"])
class LimitsOfBytesHaveNoPriority(Queues):
    """Leaves out the priority of a consumer that has a limit of bytes of its own."""

    async def open(
        self, name: str, uri: str, flags: frozenset[str], options: Mapping[str, int], timeout: float
    ) -> Queue:
        given = dict(options)
        if "max_unconfirmed_bytes" in given:
            given["consumer_priority"] = LIMITS["consumer_priority"]
        return await super().open(name, uri, flags, given, timeout)
