"""The reference client behind an adapter with a defect: every other publish begins behind its successor."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from conformance.adapter import kit
from conformance.mutants.rabbitmq_stream.adapter import StreamAdapter


class Overtaking(StreamAdapter):
    def __init__(self) -> None:
        super().__init__()
        self.turns = itertools.count()

    @kit.op("publish")
    async def publish(self, args: dict[str, Any], request_id: int, timeout_ms: float) -> dict[str, Any]:  # type: ignore[override]
        if next(self.turns) % 2:
            await asyncio.sleep(0)
        return await super().publish(**args, request_id=request_id, timeout_ms=timeout_ms)


if __name__ == "__main__":
    kit.run(Overtaking())
