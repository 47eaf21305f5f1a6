"""The meter of the harness."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.clients.adapter.call import ProcessFacts
from conformance.rules.anomalies.anomaly import LAG, STEAL
from conformance.suite import lag
from conformance.suite.lag import LagMeter
from fakebrokers.core import virtual
from tests.conformance.telltale import log_of, the
from tests.eventually import eventually


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


def process(facts: ProcessFacts | None) -> Any:
    """An adapter, as far as the meter looks at it."""
    return SimpleNamespace(facts=lambda: facts)


@pytest.mark.parametrize(
    ("times", "waited_s"),
    [
        ([{1: (0, 5_000)}, {1: (0, 5_000)}], 0.0),
        ([{1: (0, 1_000)}, {1: (0, 1_100), 2: (0, 300)}], 0.3),  # the longest wait; the second thread is new
        ([{1: (0, 0)}, {1: (0, 200)}, {2: (0, 100)}], 0.2),  # the first has ended meanwhile
    ],
)
def test_what_the_threads_of_a_client_have_waited(
    times: list[dict[int, tuple[int, int]]], waited_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [{thread: (ran, wait * 10**6) for thread, (ran, wait) in each.items()} for each in times]
    monkeypatch.setattr(lag, "times_of", lambda pid: left.pop(0) if len(left) > 1 else left[0])
    monkeypatch.setattr(lag, "_times", lambda process, thread: (0, 0))

    async def scenario() -> LagMeter:
        async with LagMeter(process(ProcessFacts(7))) as meter:
            await asyncio.sleep(1.2 if len(times) > 2 else 0.1)
        return meter

    assert virtual.run(scenario()).waited_s == pytest.approx(waited_s)


@pytest.mark.parametrize(
    ("seconds", "waited_s", "own_s", "busy_s", "is_starved"),
    [
        (20.0, 2.1, 1.0, 4.0, True),
        (20.0, 1.9, 1.0, 4.0, False),  # less than a tenth
        (20.0, 2.1, 3.0, 4.0, False),  # nobody else was there to wait for
        (0.2, 0.06, 0.1, 0.2, True),
        (0.2, 0.04, 0.1, 0.2, False),  # not worth a word
    ],
)
def test_who_had_to_wait_for_others(
    seconds: float,
    waited_s: float,
    own_s: float,
    busy_s: float,
    is_starved: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = iter([{1: (0, 0)}])
    jiffies = iter([(0,) * 8, (int(busy_s * 100), 0, 0, 9999, 9999, 0, 0, 0)])
    last = {1: (int(own_s * 1e9), int(waited_s * 1e9))}
    monkeypatch.setattr(lag, "times_of", lambda pid: next(looks, last))
    monkeypatch.setattr(lag, "_times", lambda process, thread: (0, 0))
    monkeypatch.setattr(lag, "_jiffies", lambda: next(jiffies))
    monkeypatch.setattr(lag.time, "process_time", lambda: 0.0)

    async def scenario() -> bool:
        async with LagMeter(process(ProcessFacts(7))) as meter:
            await asyncio.sleep(seconds)
        return meter.is_starved

    assert virtual.run(scenario()) is is_starved


def test_a_client_in_this_process_is_never_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> LagMeter:
        async with LagMeter(process(None)) as meter:
            monkeypatch.setattr(lag, "_times", lambda process, thread: (0, 10**12))
        return meter

    meter = asyncio.run(scenario())
    assert (meter.waited_s, meter.is_starved) == (0.0, False)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="missing: schedstat in /proc")
def test_threads_that_share_a_processor_wait_for_it() -> None:
    """Two busy processes on one processor, started by a third: both wait, and count as its own."""
    busy = "while True: pass"
    parent = (
        "import os, subprocess, sys; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        f"two = [subprocess.Popen([sys.executable, '-c', {busy!r}]) for _ in range(2)]; sys.stdin.read();"
        "[one.kill() for one in two]"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE) as child:

        def waiting() -> int:
            return sum(wait > 200_000_000 for _, wait in lag.times_of(child.pid).values())

        eventually(lambda: waiting() >= 2, "two threads wait for 0.2 s each")
        child.communicate()
    assert lag.times_of(child.pid) == {}


def test_a_judged_run_has_both_in_its_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu 10 0 10 10 0 0 0 0\n")
    monkeypatch.setattr(lag, "_STAT", stat)
    log = log_of(the("RMQS-3.06", "rabbitmq-stream"), tmp_path / "journal")
    assert [row.name for row in log.metrics] == [LAG, STEAL]
