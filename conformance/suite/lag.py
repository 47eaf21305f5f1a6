"""How far the harness itself lags behind: then it must not blame the client for being late."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from types import TracebackType

PROBE_S = 0.05


class LagMeter:
    """Measures how late the loop wakes up while the block runs."""

    def __init__(self) -> None:
        self.worst_s = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LagMeter:
        self._task = asyncio.create_task(self._probe())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _probe(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PROBE_S
            await asyncio.sleep(PROBE_S)
            self.worst_s = max(self.worst_s, loop.time() - due)


def steal_seconds() -> float | None:
    """CPU time that a hypervisor took away so far, over all cores; None where the system does not tell."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
        return int(fields[8]) / 100
    except (OSError, IndexError, ValueError):
        return None
