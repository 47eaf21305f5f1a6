"""Runs that do not end are given up, those of a busy machine are not."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from conformance.run import stuck
from conformance.run.stuck import Stuck, alarm_after, run_or_stuck

Work = Callable[[], Coroutine[Any, Any, None]]
LONG_S = 30.0  #: for what takes no time, on a machine that has much else to do


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the processor serves others."""
    monkeypatch.setattr(stuck, "PATIENCE", 1000)


async def loop_for_good() -> None:
    while True:
        pass


async def blocked() -> None:
    time.sleep(1000)


async def gone() -> None:
    os._exit(3)


async def waits() -> None:
    await asyncio.sleep(1e6)


@pytest.mark.parametrize(
    ("work", "seconds", "patience", "said"),
    [
        (loop_for_good, 0.1, 1000, "0.1 s of processor time"),
        (blocked, 2.0, 0.1, "not done after 0.2 s"),
        (gone, LONG_S, 5, "ended its process with status 3"),
    ],
)
def test_what_does_not_end_is_given_up(
    work: Work, seconds: float, patience: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stuck, "PATIENCE", patience)
    with pytest.raises(Stuck, match=said):
        run_or_stuck(work(), seconds)
    assert signal.getitimer(signal.ITIMER_PROF) == signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    monkeypatch.setattr(stuck, "PATIENCE", 5)
    run_or_stuck(waits(), LONG_S)  # virtual seconds are no problem, before and behind it


@pytest.mark.usefixtures("patience")
def test_who_waits_for_the_processor_has_patience() -> None:
    with alarm_after(0.2):
        time.sleep(0.3)


async def waits_for_good() -> None:
    try:
        await loop_for_good()
    finally:
        await asyncio.Event().wait()


async def catches_everything() -> None:
    with suppress(BaseException):
        await loop_for_good()
    with suppress(BaseException):
        await loop_for_good()


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("work", [waits_for_good, catches_everything])
def test_however_the_loop_comes_to_its_end_it_was_stuck(work: Work) -> None:
    with pytest.raises(Stuck, match="of processor time"):
        run_or_stuck(work(), 0.1)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(("steps", "times"), [(1.0, stuck.MOST_TIMES), (0.0, 1)])
def test_what_goes_on_gets_more_of_the_processor(steps: float, times: int) -> None:
    asked: list[float] = []

    def reached() -> float:
        asked.append(len(asked) * steps)
        return asked[-1]

    said = f"not done after {0.1 * times:g} s of processor time"
    with pytest.raises(Stuck, match=said):
        run_or_stuck(loop_for_good(), 0.1, reached=reached)


@pytest.mark.parametrize(("steps", "goes_on"), [(1.0, True), (0.0, False)])
def test_what_goes_on_may_wait_for_the_processor(steps: float, goes_on: bool) -> None:
    asked: list[float] = []

    def reached() -> float:
        asked.append(len(asked) * steps)
        return asked[-1]

    with suppress(Stuck), alarm_after(LONG_S, reached=reached) as said:
        for _ in range(3):
            signal.raise_signal(signal.SIGALRM)
    assert (not said) == goes_on
    assert len(asked) == (4 if goes_on else 2)  # at the beginning, and whenever the alarm rings
