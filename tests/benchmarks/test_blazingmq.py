"""BlazingMQ: how fast the fake is beside a responder of recorded bytes, and what its messages cost.

There is no real broker to compare with. The floors are those that the project promises; ratios come from
one run on one machine.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fakebrokers import BlazingMQ

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
MESSAGES = 10_000
ROUNDS = 5

SERVE = """
import sys
from fakebrokers import BlazingMQ
from fakebrokers.faults import drop
broker = BlazingMQ().start()
broker.faults.add(drop(kind="adminCommand", name="the pipe is on, and never fires"))
print(broker.port, flush=True)
sys.stdin.read()
"""


@contextmanager
def serving(*command: str) -> Iterator[str]:
    """The URL of a program that prints its port."""
    with subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"tcp://127.0.0.1:{int(process.stdout.readline())}"
        process.terminate()


def load(url: str) -> list[float]:
    """Seconds of each round; the first warms up."""
    command = [sys.executable, str(HERE / "blazingmq_load.py"), url, str(MESSAGES), str(ROUNDS + 1)]
    seconds: list[float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return seconds[1:]


def test_posts_with_ack_beside_recorded_bytes(record_property: pytest.RecordProperty) -> None:
    """10,000 posts of 100 bytes with ACK through the C++ SDK take at most 1.5 times as long.

    Journal and fault pipe are on.
    """
    pytest.importorskip("blazingmq", reason="missing: the C++ SDK (pip install blazingmq==1.2.2)")
    responder, fake = [], []
    with serving(str(HERE / "blazingmq_responder.py")) as theirs, serving("-c", SERVE) as ours:
        for _ in range(2):
            responder += load(theirs)
            fake += load(ours)
    slow, fast = statistics.median(fake), statistics.median(responder)
    text = f"fake {slow * 1e3:.0f} ms, recorded bytes {fast * 1e3:.0f} ms, ratio {slow / fast:.2f}"
    record_property("posts", text)
    print(text)
    assert slow / fast <= 1.5


def test_start_up() -> None:
    """From the call to a connected client: under 1 ms in the median."""
    times = []
    for _ in range(200):
        begun = time.perf_counter()
        broker = BlazingMQ().start()
        client = socket.create_connection((broker.host, broker.port))
        times.append(time.perf_counter() - begun)
        client.close()
        broker.stop()
    print(f"start: median {statistics.median(times) * 1e3:.2f} ms")
    assert statistics.median(times) < 0.001
