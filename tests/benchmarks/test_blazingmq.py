"""BlazingMQ: how fast the fake is beside a responder of recorded bytes, and what its messages cost.

There is no real broker to compare with. The floors are those that the project promises; ratios come from
one run on one machine, and from processor time, which other programs of the machine hardly change: it is
what the wall clock shows at worst, when client and server share one processor.
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
from typing import NamedTuple

import pytest

from fakebrokers import BlazingMQ
from tests.blazingmq.sdk import need_sdk, run

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
MESSAGES = 10_000
ROUNDS = 5
PAIRS = 3

SERVE = """
import sys, time
from fakebrokers import BlazingMQ
from fakebrokers.faults import drop
broker = BlazingMQ().start()
broker.faults.add(drop(kind="adminCommand", name="the pipe is on, and never fires"))
print(broker.port, flush=True)
for _ in sys.stdin:
    print(time.process_time(), flush=True)
"""


class Cost(NamedTuple):
    """Of one round, seconds: until the last ACK, and of processor time, the client's and the server's."""

    wall: float
    processor: float


class Server:
    """A program that prints its port, and its processor time when it is asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = f"tcp://127.0.0.1:{int(self._line())}"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def worked_s(self) -> float:
        """Seconds of processor time so far."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._line())

    def load(self) -> Cost:
        """What a round costs; the first warms up."""
        command = [sys.executable, str(HERE / "blazingmq_load.py"), self.url, str(MESSAGES), str(ROUNDS + 1)]
        before = self.worked_s()
        rounds = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)[1:]
        served = (self.worked_s() - before) / (ROUNDS + 1)
        wall, client = (statistics.median(figures) for figures in zip(*rounds, strict=True))
        return Cost(wall, client + served)


@contextmanager
def serving(*command: str) -> Iterator[Server]:
    """Run a `Server`."""
    with subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Server(process)
        process.terminate()


def test_posts_with_ack_beside_recorded_bytes(record_property: pytest.RecordProperty) -> None:
    """10,000 posts of 100 bytes with ACK through the C++ SDK take at most 1.5 times as long.

    Journal and fault pipe are on.
    """
    pytest.importorskip("blazingmq", reason="missing: the C++ SDK (pip install blazingmq==1.2.2)")
    with serving(str(HERE / "blazingmq_responder.py")) as theirs, serving("-c", SERVE) as ours:
        pairs = [(ours.load(), theirs.load()) for _ in range(PAIRS)]
    ratios = [fake.processor / recorded.processor for fake, recorded in pairs]
    for fake, recorded in pairs:
        print(
            f"fake {fake.wall * 1e3:.0f} ms, of processor time {fake.processor * 1e3:.0f} ms;"
            f" recorded bytes {recorded.wall * 1e3:.0f} ms and {recorded.processor * 1e3:.0f} ms"
        )
    walls = statistics.median(fake.wall / recorded.wall for fake, recorded in pairs)
    text = f"ratio of processor time {statistics.median(ratios):.2f}, of the wall clock {walls:.2f}"
    record_property("posts", text)
    print(text)
    assert walls <= 1.5


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


def test_large_messages_do_not_wait_for_the_kernel() -> None:
    """Its send buffer is so small that the broker's delayed acknowledgements would stop it: 17 a second."""
    need_sdk()
    with BlazingMQ() as broker:
        done = run(
            broker,
            """
            client.open(Q, write=True)
            begun = time.monotonic()
            for _ in range(80):
                client.post(Q, bytes(65536))
            client.wait(acks=80)
            seconds = time.monotonic() - begun
            client.stop()
            tell(seconds=seconds)
            """,
        )
    assert done.told["seconds"] < 2.0
