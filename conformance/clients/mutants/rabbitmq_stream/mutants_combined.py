"""Defects where two things meet: options of one op, two ends."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription


class _StreamClosingInTurn(StreamClient):
    async def close(self, timeout: float | None = None) -> None:
        async with self.__dict__.setdefault("turn", asyncio.Lock()):
            await super().close(timeout)


@mutant("ends-take-turns", tag="life-cycle", breaks=["R17", "X7"], also=[_StreamClosingInTurn])
class StreamEndsTakeTurns(Consuming):
    """Closes only when the server has answered each Unsubscribe."""

    async def unsubscribe(self, subscription: Any, **more: Any) -> None:
        async with self.client.__dict__.setdefault("turn", asyncio.Lock()):
            await super().unsubscribe(subscription, **more)


@mutant("named-consumers-have-no-filter", tag="data", breaks=["R21"])
class NamedConsumersHaveNoFilter(Consuming):
    """Leaves out the filter of a subscription that has a name."""

    async def subscribe(self, stream: str, on_message: Any, **options: Any) -> Subscription:
        properties = dict(options.get("properties") or {})
        if "name" in properties:
            own = {key: value for key, value in properties.items() if not key.startswith("filter.")}
            options |= {"properties": own, "accepts": None}
        return await super().subscribe(stream, on_message, **options)
