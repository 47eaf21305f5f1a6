"""A million recorded events with changed bytes against a fake: it goes on, silently, and stays small."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.frames import BrokerResponse
from tests.blazingmq.bench import CPP
from tests.blazingmq.golden import Event, events, scenarios

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EVENTS = 1_000_000
#: Growth that is allowed between the first tenth and the end, bytes.
GROWTH = 64e6

#: Limits, so that what is stored does not hide what leaks.
SERVE = """
import sys
from fakebrokers import BlazingMQ
limits = {"queue_messages": 100, "max_queues": 100, "deduplication_time_ms": 0}
names = {"priority": (), "fanout": ("foo", "bar"), "broadcast": ()}
domains = {f"bmq.test.mem.{m}": {"mode": m, "app_ids": a, **limits} for m, a in names.items()}
with BlazingMQ(domains=domains, heartbeats=True, heartbeat_ms=100, journal_limit=1000) as broker:
    print(broker.port, flush=True)
    sys.stdin.read()
"""


class Attacker:
    """Sends conversations in which some events have other bytes."""

    def __init__(self, port: int, seed: int) -> None:
        self.port = port
        self.sent = 0
        self._chance = random.Random(seed)
        self._conversations = [
            [event.data for event in events() if event.scenario == scenario and _goes_on(event)]
            for scenario in scenarios()
        ]

    def send(self, count: int) -> None:
        """At least so many events; each connection ends when the broker has had enough, or after a while."""
        end = self.sent + count
        while self.sent < end:
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as client:
                reader = threading.Thread(target=_drain, args=(client,))
                reader.start()
                try:
                    self._talk(client)
                    client.shutdown(socket.SHUT_WR)
                except OSError:
                    pass  # the broker has hung up
                reader.join()

    def _talk(self, client: socket.socket) -> None:
        chance = self._chance
        identity, *_ = conversation = chance.choice(self._conversations)
        client.sendall(identity if chance.random() < 0.95 else self._changed(identity))
        for _ in range(chance.randrange(1, 40)):
            batch = chance.choices(conversation[1:], k=chance.randrange(1, 60))
            client.sendall(
                b"".join([self._changed(each) if chance.random() < 0.5 else each for each in batch])
            )
            self.sent += len(batch)

    def _changed(self, event: bytes) -> bytes:
        """Other bytes, rarely in the header: behind a wrong length nothing is read any more."""
        chance = self._chance
        data = bytearray(event)
        first = 0 if chance.random() < 0.002 else 4
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(first, len(data))] = chance.randrange(256)
        data[5] = 2 if first else data[5]
        return bytes(data)


def _goes_on(event: Event) -> bool:
    """Whether it comes from an SDK, and does not end its session: nothing is read behind that."""
    return event.direction == "C2S" and not event.description.endswith("disconnect")


def _drain(client: socket.socket) -> None:
    try:
        while client.recv(1 << 16):
            pass
    except OSError:
        pass


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the size of a process from /proc")
def test_a_million_changed_events() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as fake:
        assert fake.stdout is not None
        port = int(fake.stdout.readline())
        attacker = Attacker(port, seed=1)
        attacker.send(EVENTS // 10)
        before = resident(fake.pid)
        attacker.send(EVENTS - attacker.sent)
        grown = resident(fake.pid) - before
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(BlazingCodec().encode(CPP))
            ((answer, _),) = BlazingCodec().feed(client.recv(1 << 16))
        assert isinstance(answer, BrokerResponse)
        _, errors = fake.communicate("", timeout=60)
    assert (fake.returncode, errors) == (0, "")
    assert grown < GROWTH, f"{grown / 1e6:.0f} MB more"
