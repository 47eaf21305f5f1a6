"""RabbitMQ Stream: how fast the fake is beside the real server, and what its messages cost.

The floors are those that the project promises; ratios come from one run on one machine.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fakebrokers import RabbitMQStream
from tests.real_rabbitmq import real_rabbitmq

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

LOAD = Path(__file__).with_name("stream_load.py")
MESSAGES = 500_000
ROUNDS = 3

SERVE = """
import sys
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop
broker = RabbitMQStream().start()
broker.faults.add(drop(kind="CreateSuperStream", name="the pipe is on, and never fires"))
print(broker.port, flush=True)
sys.stdin.read()
"""


def load(host: str, port: int) -> dict[str, float]:
    """Messages per second for publish + confirm and for consume, as a client in its own process sees them."""
    command = [sys.executable, str(LOAD), host, str(port), str(MESSAGES)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def test_throughput_beside_the_real_server(record_property: pytest.RecordProperty) -> None:
    """Each message published, confirmed and consumed: at least 1.5 times the real server.

    Journal and fault pipe are on.
    """
    fake: list[dict[str, float]] = []
    real: list[dict[str, float]] = []
    with (
        real_rabbitmq() as server,
        subprocess.Popen(
            [sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as serving,
    ):
        assert serving.stdout is not None
        port = int(serving.stdout.readline())
        for _ in range(ROUNDS):
            real.append(load(server.host, server.port))
            fake.append(load("127.0.0.1", port))
        serving.terminate()
    for rows in (fake, real):
        for row in rows:
            row["both"] = 1 / (1 / row["publish_confirm"] + 1 / row["consume"])
    ratios = {}
    for what in ("publish_confirm", "consume", "both"):
        ours = statistics.median(row[what] for row in fake)
        theirs = statistics.median(row[what] for row in real)
        ratios[what] = ours / theirs
        record_property(what, f"{ours / 1e6:.2f} M/s, real {theirs / 1e6:.2f} M/s, ratio {ratios[what]:.2f}")
        print(f"{what}: fake {ours / 1e6:.2f} M/s, real {theirs / 1e6:.2f} M/s, ratio {ratios[what]:.2f}")
    # Consuming alone is bounded by the load generator's own loop, so it is no measure of either server.
    assert ratios["publish_confirm"] >= 1.5
    assert ratios["both"] >= 1.5


def test_start_up() -> None:
    """From the call to a connected client: under 1 ms in the median."""
    times = []
    for _ in range(200):
        begun = time.perf_counter()
        broker = RabbitMQStream().start()
        client = socket.create_connection((broker.host, broker.port))
        times.append(time.perf_counter() - begun)
        client.close()
        broker.stop()
    print(f"start: median {statistics.median(times) * 1e3:.2f} ms")
    assert statistics.median(times) < 0.001


def test_memory_of_a_million_messages() -> None:
    """One million 100-byte messages in a stream cost under 250 MB of resident memory."""
    script = f"""
import os, sys
sys.path.insert(0, {str(LOAD.parent)!r})
from fakebrokers import RabbitMQStream
import stream_load
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
with RabbitMQStream() as broker:
    broker.create_stream("s")
    before = resident()
    connection = stream_load.Connection(broker.host, broker.port)
    declare = bytes([0, 0, 0, 6, 0]) + stream_load.text("") + stream_load.text("s")
    connection.ask(stream_load.frame(1, declare))
    for _ in range(10):
        stream_load.publish_all(connection, 100_000)
    print(resident() - before)
"""
    grown = int(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout)
    print(f"a million messages: {grown / 1e6:.0f} MB")
    assert grown < 250e6
