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

from conformance.sweep.stuck import PATIENCE, Stuck, alarm_after, run_or_stuck

Work = Callable[[], Coroutine[Any, Any, None]]


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
    ("work", "said"),
    [
        (loop_for_good, "0.1 s of processor time"),
        (blocked, "not done after 0.5 s"),
        (gone, "ended its process with status 3"),
    ],
)
def test_what_does_not_end_is_given_up(work: Work, said: str) -> None:
    with pytest.raises(Stuck, match=said):
        run_or_stuck(work(), 0.1)
    assert signal.getitimer(signal.ITIMER_PROF) == signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    run_or_stuck(waits(), 0.1)  # virtual seconds are no problem, before and behind it


def test_who_waits_for_the_processor_has_patience() -> None:
    with alarm_after(0.1):
        time.sleep(0.1 * PATIENCE / 2)


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


@pytest.mark.parametrize("work", [waits_for_good, catches_everything])
def test_however_the_loop_comes_to_its_end_it_was_stuck(work: Work) -> None:
    with pytest.raises(Stuck, match="of processor time"):
        run_or_stuck(work(), 0.1)
