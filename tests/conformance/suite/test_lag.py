"""The meter of the harness."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from conformance.checkers.anomaly import LAG, STEAL
from conformance.suite import lag
from conformance.suite.lag import LagMeter
from tests.conformance.telltale import log_of, the


def measured(block: float) -> LagMeter:
    async def scenario() -> LagMeter:
        async with LagMeter() as meter:
            await asyncio.sleep(0.01)
            time.sleep(block)
            await asyncio.sleep(0.06)
        return meter

    return asyncio.run(scenario())


def test_a_blocked_loop_shows_as_lag() -> None:
    assert measured(0.2).worst_s > 0.1


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        ("cpu 10 0 10 10 0 0 0 0 0 0\n", "cpu 20 0 20 20 0 0 0 10 5 5\n", 0.25),
        ("cpu 10 0 10 10 0 0 0 4\n", "cpu 10 0 10 10 0 0 0 4\n", 0.0),
        ("cpu 10 0 10\n", "cpu 20 0 20\n", None),
        ("what?\n", "what?\n", None),
    ],
)
def test_the_share_of_cpu_time_that_others_took(
    before: str, after: str, share: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = tmp_path / "stat"
    stat.write_text(before)
    monkeypatch.setattr(lag, "_STAT", stat)

    async def scenario() -> LagMeter:
        async with LagMeter() as meter:
            stat.write_text(after)
        return meter

    assert asyncio.run(scenario()).steal == share


def test_a_system_that_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "_STAT", tmp_path / "nothing")
    assert measured(0).steal is None


def test_a_judged_run_has_both_in_its_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu 10 0 10 10 0 0 0 0\n")
    monkeypatch.setattr(lag, "_STAT", stat)
    log = log_of(the("RMQS-3.06", "rabbitmq-stream"), tmp_path / "journal")
    assert [row.name for row in log.metrics] == [LAG, STEAL]
