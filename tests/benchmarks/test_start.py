"""How long a fresh fake takes until it can be used, and how fast a large frame is read."""

from __future__ import annotations

import resource
import socket
import statistics
import subprocess
import sys
import time

import pytest

from fakebrokers import PZQ, Narconi
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.publishing import publish
from fakebrokers.server import FakeServer
from tests.toy import Toy

pytestmark = pytest.mark.benchmark


def test_a_fresh_fake_accepts_a_connection_within_a_millisecond() -> None:
    times = []
    for _ in range(200):
        started = time.perf_counter()
        toy = Toy().start()
        with socket.create_connection((toy.host, toy.port)):
            times.append(time.perf_counter() - started)
        toy.stop()
    assert statistics.median(times) < 0.001


@pytest.mark.parametrize("kind", [Narconi, PZQ])
def test_starts_in_less_than_5_ms(kind: type[FakeServer]) -> None:
    kind().start().stop()  # the loop thread is there now
    times = []
    for _ in range(20):
        started = time.perf_counter()
        fake = kind().start()
        times.append(time.perf_counter() - started)
        fake.stop()
    assert min(times) < 0.005


def test_speed_of_publish() -> None:
    """500 messages of 100 bytes in one frame: at most half a microsecond each."""
    wire = StreamCodec().encode(publish(1, [(n, bytes(100)) for n in range(500)]))
    codec = StreamCodec()
    best = 1.0
    for _ in range(50):
        started = time.perf_counter()
        list(codec.feed(wire))
        best = min(best, time.perf_counter() - started)
    assert best < 250e-6


@pytest.mark.parametrize(("command", "limit_s"), [("--help", 0.3), ("list", 0.8)])
def test_a_command_is_there_in_little_processor_time(command: str, limit_s: float) -> None:
    """Seconds of the processor, the best of five, with everything compiled."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "fakebrokers", command], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"fakebrokers {command}: {min(times):.2f} s of the processor")
    assert min(times) <= limit_s
