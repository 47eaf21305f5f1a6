"""The reference client behind an adapter with a defect: every other publish begins behind its successor."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.rabbitmq_stream.ops import REFERENCE, StreamOps


class Overtaking(StreamOps):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.turns = itertools.count()

    @kit.op("publish")
    async def publish(self, args: dict[str, Any], request_id: int, timeout_ms: float) -> dict[str, Any]:  # type: ignore[override]
        if next(self.turns) % 2:
            await asyncio.sleep(0)
        return await super().publish(**args, request_id=request_id, timeout_ms=timeout_ms)


if __name__ == "__main__":
    kit.run(adapter_of(REFERENCE, [Overtaking])())
