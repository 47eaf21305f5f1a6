"""What a score of a project's tests costs beside one run of them: CPU of all processes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

TESTS = 50
#: CPU of a run with the score, at most, in runs without.
MOST = 10.0

#: Half of the tests look at what is stored or delivered, half at nothing.
PROJECT = f"""
import asyncio

import pytest
from rstream import Producer

async def publish(broker, bodies):
    async with Producer(broker.host, broker.port, username="guest", password="guest") as producer:
        for body in bodies:
            await producer.send_wait("orders", body, timeout=1)

@pytest.mark.parametrize("number", range({TESTS}))
def test_orders(rabbitmq_stream, number):
    rabbitmq_stream.create_stream("orders")
    bodies = [b"%d" % each for each in range(number % 10 + 1)]
    asyncio.run(publish(rabbitmq_stream, bodies))
    if number % 2:
        assert [m.body for m in rabbitmq_stream.messages("orders")] == bodies
"""


def cpu_of(folder: Path, *args: str) -> tuple[float, str]:
    """Seconds of CPU of pytest and all that it starts, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args],
        cwd=folder,
        env=os.environ | {"COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def test_a_score_costs_at_most_ten_runs(tmp_path: Path) -> None:
    pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")
    (tmp_path / "test_orders.py").write_text(PROJECT)
    plain, _ = cpu_of(tmp_path)
    scored, printed = cpu_of(tmp_path, "--fakebrokers-mutate", "--fakebrokers-mutate-wait=5")
    print(printed)
    print(f"plain {plain:.2f} s, with the score {scored:.2f} s of CPU: {scored / plain:.1f} times")
    assert scored <= MOST * plain
