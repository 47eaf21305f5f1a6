"""Moleculer: calls per second between two real nodes, over the embedded servers and over the real ones.

The floors are those that the project promises; ratios come from one run on one machine.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fakebrokers import Moleculer
from tests.real_buses import real_bus, required

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
PACKAGES = (
    Path(__file__).parents[2] / "conformance" / "clients" / "adapters" / "moleculer-node" / "node_modules"
)
PACKAGE = "moleculer-0.14"

SERVE = """
import sys
from fakebrokers import Moleculer
bus = Moleculer(transporter=sys.argv[1]).start()
print(bus.port, flush=True)
sys.stdin.read()
"""


@contextmanager
def fake(transporter: str) -> Iterator[str]:
    """The URL of the embedded one, in a process of its own."""
    command = [sys.executable, "-c", SERVE, transporter]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"{transporter}://127.0.0.1:{int(process.stdout.readline())}"
        process.terminate()


def load(url: str) -> dict[str, list[float]]:
    """Calls per second of each round, by calls in flight."""
    command = ["node", str(HERE / "moleculer_load.cjs"), str(PACKAGES), PACKAGE, url]
    done = subprocess.run(
        command, check=True, capture_output=True, env={**os.environ, "NODE_ENV": "production"}
    )
    rates: dict[str, list[float]] = json.loads(done.stdout)
    return rates


@pytest.mark.parametrize(
    ("transporter", "one", "many"), [("nats", 0.6, 0.4), ("redis", 0.5, 0.5), ("mqtt", 0.5, 0.5)]
)
def test_calls_beside_the_real_server(
    transporter: str, one: float, many: float, record_property: pytest.RecordProperty
) -> None:
    """With one call in flight and with 32, the median of five rounds each, twice in turn.

    The journal is on.
    """
    required(transporter)
    if not (PACKAGES / PACKAGE / "package.json").is_file():
        pytest.skip(f"missing: npm packages (npm ci in {PACKAGES.parent})")
    ours: dict[str, list[float]] = {"1": [], "32": []}
    theirs: dict[str, list[float]] = {"1": [], "32": []}
    with real_bus(transporter) as far, fake(transporter) as near:
        for _ in range(2):
            for url, rates in ((far, theirs), (near, ours)):
                for in_flight, found in load(url).items():
                    rates[in_flight] += found
    ratios = {n: statistics.median(ours[n]) / statistics.median(theirs[n]) for n in ("1", "32")}
    parts = []
    for in_flight, ratio in ratios.items():
        rate, of = statistics.median(ours[in_flight]), statistics.median(theirs[in_flight])
        parts.append(f"{in_flight} in flight: {rate:.0f} of {of:.0f} calls/s = {ratio:.2f}")
    text = ", ".join(parts)
    record_property("calls", text)
    print(f"{transporter}: {text}")
    assert ratios["1"] >= one and ratios["32"] >= many


@pytest.mark.parametrize("transporter", ["nats", "redis", "mqtt", "tcp"])
def test_start_up(transporter: str) -> None:
    """From the call to a connected client: under 1 ms in the median."""
    times = []
    for _ in range(200):
        begun = time.perf_counter()
        bus = Moleculer(transporter=transporter).start()
        client = socket.create_connection((bus.host, bus.port))
        times.append(time.perf_counter() - begun)
        client.close()
        bus.stop()
    print(f"start of {transporter}: median {statistics.median(times) * 1e3:.2f} ms")
    assert statistics.median(times) < 0.001
