"""The meter of the harness."""

from __future__ import annotations

import asyncio
import time

from fakebrokers.journal import RunJournal
from fakebrokers.journal.meter import Meter


def test_a_blocked_loop_shows_as_lag() -> None:
    run = RunJournal(None, "r")

    async def scenario() -> float:
        meter = Meter(run, every_s=0.005)
        meter.start()
        await asyncio.sleep(0.012)
        time.sleep(0.05)
        await asyncio.sleep(0.012)
        meter.stop()
        meter.stop()
        return meter.worst_lag_ms

    worst = asyncio.run(scenario())
    lags = [row.value for row in run.log().metrics if row.name == "loop_lag_ms"]
    assert len(lags) >= 2 and max(lags) == worst > 30
    assert all(0 <= row.value <= 1 for row in run.log().metrics if row.name == "cpu_steal")
