"""How fast the fake is over sockets, in a process of its own: produce with ack, consume with ack.

The recorded daemon took and acknowledged 20,000 messages in one go in 1.3 s, its start included, and one
message at a time in about 0.1 ms on a quiet machine. The floors are far below, as CI machines are busy;
run this file with -s to see the numbers.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import zmq

MESSAGES = 20_000
BODY = b"x" * 100


@pytest.fixture
def served() -> Iterator[dict[str, str]]:
    """Endpoints of a fake that another process serves."""
    command = [sys.executable, "-m", "fakebrokers", "serve", "pzq"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        yield dict(pair.split("=") for pair in child.stdout.readline().split()[3:])
        child.terminate()


@pytest.fixture
def context() -> Iterator[Any]:
    context = zmq.Context()
    yield context
    context.term()


def connected(context: Any, kind: int, endpoint: str) -> Any:
    socket = context.socket(kind)
    socket.linger, socket.rcvtimeo, socket.sndhwm, socket.rcvhwm = 0, 1000, 0, 0
    socket.connect(endpoint)
    return socket


def report(what: str, messages: int, since: float, until: float | None = None) -> float:
    per_second = messages / ((until or time.perf_counter()) - since)
    print(f"{what}: {per_second:.0f} messages/s")
    return per_second


@pytest.mark.benchmark
def test_throughput(served: dict[str, str], context: Any) -> None:
    producer = connected(context, zmq.DEALER, served["receive"])
    consumer = None
    try:
        start = time.perf_counter()
        for _ in range(MESSAGES // 5):
            producer.send_multipart([b"id", b"", BODY])
            producer.recv_multipart()
        assert report("one at a time, with ack", MESSAGES // 5, start) > 1500

        start = last = time.perf_counter()
        for _ in range(MESSAGES):
            producer.send_multipart([b"id", b"", BODY])
        acknowledged = 0
        while acknowledged < MESSAGES:
            try:
                producer.recv_multipart()
            except zmq.Again:
                break  # the rest was lost, as with the daemon
            acknowledged += 1
            last = time.perf_counter()
        print(f"{acknowledged} acknowledgements of {MESSAGES}")
        assert report("in one go, with ack", MESSAGES, start, last) > 4000

        consumer = connected(context, zmq.ROUTER, served["send"])
        start = time.perf_counter()
        for _ in range(MESSAGES):
            routing_id, key, *_ = consumer.recv_multipart()
            consumer.send_multipart([routing_id, key, b"1"])
        assert report("consume with ack", MESSAGES, start) > 2000
    finally:
        producer.close()
        if consumer is not None:
            consumer.close()
