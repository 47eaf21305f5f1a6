"""Recorded events with changed bytes against a running fake: it goes on, silently, serves others, and stays
as small as it was.

python -m tests.blazingmq.fuzz 1000000
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import NamedTuple

from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.frames import (
    Ack,
    ConfigureStream,
    Confirm,
    ConfirmMessage,
    HeartbeatRequest,
    HeartbeatResponse,
    OpenQueue,
    Push,
    Put,
)
from fakebrokers.blazingmq.schema import StreamParameters
from fakebrokers.core.frames import Frame
from tests.blazingmq.bench import CPP, parameters, put, subscription
from tests.blazingmq.golden import Event, events, scenarios

#: Bytes of memory that it may have more at the end than after the first tenth.
GROWTH = 64e6
#: Seconds that the other client waits for anything, on a busy machine.
PATIENCE_S = 30.0
NEIGHBOUR = "bmq://neighbour/q"

#: Limits, so that what is stored does not hide what leaks.
SERVE = """
import sys
from fakebrokers import BlazingMQ
limits = {"queue_messages": 100, "max_queues": 100, "deduplication_time_ms": 0}
names = {"priority": (), "fanout": ("foo", "bar"), "broadcast": ()}
domains = {f"bmq.test.mem.{m}": {"mode": m, "app_ids": a, **limits} for m, a in names.items()}
domains["neighbour"] = {"mode": "priority", **limits}
with BlazingMQ(domains=domains, heartbeats=True, heartbeat_ms=100, journal_limit=1000) as broker:
    print(broker.port, flush=True)
    sys.stdin.read()
"""


class Attacker:
    """Sends conversations in which some events have other bytes, or come from the wrong side."""

    def __init__(self, port: int, seed: int) -> None:
        self.port = port
        self.sent = 0
        self._chance = random.Random(seed)
        self._conversations = [
            [event.data for event in events() if event.scenario == scenario and _goes_on(event)]
            for scenario in scenarios()
        ]
        self._of_brokers = [event.data for event in events() if event.direction == "S2C"]

    def send(self, most: int) -> None:
        """At least that many events; a connection ends when the broker has had enough, or after a while."""
        end = self.sent + most
        while self.sent < end:
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as client:
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
        identity, *rest = chance.choice(self._conversations)
        client.sendall(identity if chance.random() < 0.95 else self._changed(identity))
        for _ in range(chance.randrange(1, 40)):
            batch = chance.choices(rest, k=chance.randrange(1, 60)) + chance.choices(self._of_brokers, k=3)
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


class Neighbour(threading.Thread):
    """Another client, which posts, gets its message and confirms it, again and again.

    Attributes:
        rounds: How often that went well.
        trouble: What went wrong; then it has ended.
    """

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.rounds = 0
        self.trouble: Exception | None = None
        self._port = port
        self._codec = BlazingCodec()
        self._frames: list[Frame] = []
        self._done = threading.Event()

    def run(self) -> None:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE_S) as self._socket:
                self._work()
        except Exception as error:
            self.trouble = error

    def finish(self) -> None:
        """Let it end its round."""
        self._done.set()
        self.join(PATIENCE_S)

    def _work(self) -> None:
        opening = OpenQueue(1, parameters(NEIGHBOUR, read=True, write=True))
        reading = ConfigureStream(2, 0, StreamParameters("__default", (subscription(),)))
        for request in (CPP, opening, reading):
            self._say(request)
            self._next()
        for number in count(1):
            self._say(Put((put(b"hello", number=number),)))
            pushed = None
            for frame in (self._next(), self._next()):
                if isinstance(frame, Push):
                    pushed = frame.messages[0]
                else:
                    assert isinstance(frame, Ack) and frame.messages[0].status == 0, frame
            assert pushed is not None and pushed.data == b"hello", pushed
            self._say(Confirm((ConfirmMessage(0, pushed.guid),)))
            self.rounds += 1
            if self._done.wait(0.005):
                return

    def _say(self, frame: Frame) -> None:
        self._socket.sendall(self._codec.encode(frame))

    def _next(self) -> Frame:
        while True:
            while not self._frames:
                data = self._socket.recv(1 << 16)
                if not data:
                    raise EOFError("the broker has hung up")
                self._frames += [frame for frame, _ in self._codec.feed(data)]
            frame = self._frames.pop(0)
            if not isinstance(frame, HeartbeatRequest):
                return frame
            self._say(HeartbeatResponse())


class Found(NamedTuple):
    """How it went: rounds of the other client, bytes of growth, exit code and standard error of the fake."""

    rounds: int
    grown: int
    code: int
    errors: str
    trouble: Exception | None


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def attack(most: int, seed: int = 1) -> Found:
    """Attack a fake in a process of its own with that many events."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as fake:
        assert fake.stdout is not None
        port = int(fake.stdout.readline())
        neighbour = Neighbour(port)
        neighbour.start()
        attacker = Attacker(port, seed)
        attacker.send(most // 10)
        before = resident(fake.pid)
        attacker.send(most - attacker.sent)
        grown = resident(fake.pid) - before
        neighbour.finish()
        _, errors = fake.communicate("", timeout=60)
    return Found(neighbour.rounds, grown, fake.returncode, errors, neighbour.trouble)


def main() -> int:
    """The command line; 1 if something went wrong."""
    most = int(sys.argv[1])
    began = time.perf_counter()
    found = attack(most)
    seconds = time.perf_counter() - began
    print(f"{most} events, {seconds:.0f} s; grown by {found.grown / 1e6:.1f} MB; {found.rounds} rounds")
    for problem in (found.trouble, found.errors):
        if problem:
            print(problem, file=sys.stderr)
    return int(bool(found.trouble or found.errors or found.code or found.grown > GROWTH))


if __name__ == "__main__":
    sys.exit(main())
