"""RabbitMQ Stream: small messages of 100 bytes, beside the real server.

Every figure is a ratio within one run, of the medians of runs that alternate. The load generator has its
frames ready and sends one per write, or 50: more than 300,000 of them per second. A generator that takes 9 us
or more for each frame is itself the limit with single messages, and shows no such distance there.

The floors guard against a fall, on a machine that has nothing else to do. Below 1.0 are single messages, as
the fake is Python in one thread (measured: 0.53 to 0.94, and 0.27 to 0.32 in bursts), and consuming, where
the generator's own loop takes most of the time (0.63 to 1.2).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.real_rabbitmq import HOST, RealRabbit, real_rabbitmq

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

LOAD = Path(__file__).with_name("stream_load.py")
LATENCY = Path(__file__).with_name("stream_latency.py")
ROUNDS = 5

#: batch, frames per write, messages; the least ratio of publish + confirm, and of consume (0: any)
SHAPES = [
    (1, 1, 40_000, 0.4, 0.0),
    (10, 1, 200_000, 1.0, 0.5),
    (100, 1, 500_000, 2.0, 0.5),
    (500, 1, 1_000_000, 2.0, 0.5),
    (1, 50, 200_000, 0.3, 0.0),
]

Both = dict[str, tuple[str, int]]


@contextmanager
def fake() -> Iterator[int]:
    """The port of a fake in a process of its own, as people run it."""
    command = [sys.executable, "-m", "fakebrokers", "serve", "rabbitmq-stream"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        try:
            yield int(serving.stdout.readline().split()[2].rpartition(":")[2])
        finally:
            serving.terminate()


@pytest.fixture(scope="module")
def real() -> Iterator[RealRabbit]:
    with real_rabbitmq() as server:
        yield server


@pytest.fixture
def both(real: RealRabbit) -> Iterator[Both]:
    """Where the two listen."""
    with fake() as port:
        yield {"fake": (HOST, port), "real": (real.host, real.port)}


def run(script: Path, *arguments: object) -> dict[str, float]:
    command = [sys.executable, str(script), *map(str, arguments)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def medians(both: Both, script: Path, *arguments: object) -> dict[str, dict[str, float]]:
    """What both scripts print, as medians of `ROUNDS` runs in turn."""
    rows: dict[str, list[dict[str, float]]] = {who: [] for who in both}
    for _ in range(ROUNDS):
        for who, (host, port) in both.items():
            rows[who].append(run(script, host, port, *arguments))
    return {
        who: {what: statistics.median(row[what] for row in found) for what in found[0]}
        for who, found in rows.items()
    }


def tell(record_property: Any, name: str, found: dict[str, dict[str, float]], what: str) -> float:
    """Write down both figures and what the machine did besides; returns the ratio of fake to real."""
    ours, theirs = found["fake"][what], found["real"][what]
    load = os.getloadavg()[0]
    line = f"fake {ours:,.3g}, real {theirs:,.3g}, ratio {ours / theirs:.2f}, load {load:.1f}"
    record_property(name, line)
    print(f"{name}: {line}")
    return ours / theirs


@pytest.mark.parametrize(("batch", "per_write", "messages", "publish", "consume"), SHAPES)
def test_throughput(
    both: Both,
    record_property: Any,
    batch: int,
    per_write: int,
    messages: int,
    publish: float,
    consume: float,
) -> None:
    found = medians(both, LOAD, messages, batch, per_write)
    name = f"{batch} x {per_write}"
    published = tell(record_property, f"{name} publish + confirm, messages/s", found, "publish_confirm")
    consumed = tell(record_property, f"{name} consume, messages/s", found, "consume")
    assert published >= publish
    assert consumed >= consume


def test_latency_of_one_message(both: Both, record_property: Any) -> None:
    found = medians(both, LATENCY, 1.5, 0)
    assert tell(record_property, "p50 of a publish, ms", found, "p50_ms") <= 1.0


def test_a_quiet_client_beside_one_that_floods(both: Both, record_property: Any) -> None:
    found = medians(both, LATENCY, 3.0, 1)
    tell(record_property, "p99 beside a flood, ms", found, "p99_ms")
    assert found["fake"]["p99_ms"] <= 100
