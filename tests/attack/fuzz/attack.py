"""Changed recordings against a running server, by sockets.

The server is a process of its own. Nothing may come on its stderr, its memory stays what it is, and a second
client, which behaves, is served all the while.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import IO, NamedTuple

from tests.attack.fuzz.recorded import Talk, mutated, talks_of
from tests.attack.fuzz.second import HOST, SECONDS, Second

#: Pieces on one connection.
PER_CONNECTION = 50
#: Pieces between two looks at the server, which then forgets what it has stored.
PER_LOOK = 5000
#: Pieces between two questions of the second client; behind an answer a connection shows that it has ended.
PER_QUESTION = 4
#: Seconds that the attacker waits for an answer to what it says first; changed, there may be none.
ANSWER_S = 0.05
#: Part of the pieces before memory is looked at for the first time: until then caches and the journal fill.
WARM_UP = 0.2
#: Questions of the second client before the attack begins.
QUIET_QUESTIONS = 100


class Outcome(NamedTuple):
    """What came of it.

    Attributes:
        connections: Of the attacker.
        asked: Questions of the second client that were answered.
        grown: Memory of the server, in KiB.
        quiet_s: 99th percentile of the second client's waits before the attack, in seconds.
        wait_s: That of its waits during the attack.
        longest_s: The longest of them.
        stderr: What the server said there.
    """

    connections: int
    asked: int
    grown: int
    quiet_s: float
    wait_s: float
    longest_s: float
    stderr: str


class Sender:
    """Connections that say what comes, and do not care how they end."""

    def __init__(self, ports: list[int], talks: list[Talk], random: Random) -> None:
        self.connections = 0
        self._ports = ports
        self._talks = talks
        self._random = random
        self._talk = talks[0]
        self._socket: socket.socket | None = None
        self._said = 0

    def say(self) -> None:
        """Say a piece, every other one changed; on a new connection where the last one has ended."""
        if self._socket is None or self._said >= PER_CONNECTION:
            self.close()
            self._connect()
        piece = self._random.choice(self._talk.pieces)
        self._said += 1
        self._send(piece if self._random.random() < 0.5 else mutated(piece, self._random))

    def _connect(self) -> None:
        """Begin a conversation; mostly as it has to begin."""
        random = self._random
        self._talk = random.choice(self._talks)
        self._socket = socket.create_connection((HOST, self._ports[self._talk.port]), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._said = 0
        self.connections += 1
        for part in self._talk.opening if random.random() < 0.75 else ():
            self._send(mutated(part, random) if random.random() < 0.05 else part)
            self._hear()

    def _send(self, data: bytes) -> None:
        if self._socket is not None:
            try:
                self._socket.settimeout(30)
                self._socket.sendall(data)
            except OSError:
                self.close()

    def _hear(self) -> None:
        """Wait for an answer, if there is one."""
        if self._socket is not None:
            self._socket.settimeout(ANSWER_S)
            with contextlib.suppress(OSError):
                self._socket.recv(1 << 16)

    def listen(self) -> None:
        """Read what there is, and see whether the connection has ended."""
        if self._socket is None:
            return
        self._socket.setblocking(False)
        try:
            while self._socket.recv(1 << 16):
                pass
            self.close()
        except BlockingIOError:
            pass
        except OSError:
            self.close()

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Server:
    """The server's process.

    Attributes:
        ports: See `recorded.Talk.port`.
    """

    def __init__(self, wire: str, stderr: IO[bytes]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.attack.fuzz.serving", wire],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._process.stdout is not None and self._process.stdin is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self.ports = [int(port) for port in self._out.readline().split()]

    def look(self) -> int:
        """Let it raise what went wrong inside, and forget what it stored; its memory in KiB."""
        self._in.write("\n")
        self._in.flush()
        assert self._out.readline() == "fine\n", "the server has ended"
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))

    def stop(self) -> int:
        """Its exit code."""
        with contextlib.suppress(OSError):
            self._in.close()
        self._process.wait(60)
        self._out.close()
        return self._process.returncode


@contextlib.contextmanager
def _second(wire: str, ports: list[int]) -> Iterator[Second]:
    second = SECONDS[wire](ports)
    try:
        yield second
    finally:
        second.close()


def attack(wire: str, count: int, folder: Path, seed: int = 0) -> Outcome:
    """Send `count` pieces. Raises when the server fails or hangs, or the second client is not served."""
    log, waits, memory = folder / f"{wire}.stderr", list[float](), list[int]()
    with log.open("w+b") as stderr:
        server = Server(wire, stderr)
        try:
            assert server.ports, log.read_text()
            sender = Sender(server.ports, talks_of(wire), Random(seed))
            with _second(wire, server.ports) as second:
                quiet = [_waited(second) for _ in range(QUIET_QUESTIONS)]
            for begin in range(0, count, PER_LOOK):
                with _second(wire, server.ports) as second:
                    for number in range(begin, min(begin + PER_LOOK, count)):
                        sender.say()
                        if number % PER_QUESTION == 0:
                            waits.append(_waited(second))
                            sender.listen()
                sender.close()
                size = server.look()
                if begin >= count * WARM_UP or not memory:
                    memory.append(size)
        finally:
            code = server.stop()
    found = log.read_text(errors="replace")
    assert code == 0, found
    first = memory[1] if len(memory) > 2 else memory[0]  # behind the warm-up
    return Outcome(
        sender.connections, len(waits), memory[-1] - first, _most(quiet), _most(waits), max(waits), found
    )


def _waited(second: Second) -> float:
    began = time.perf_counter()
    second.ask()
    return time.perf_counter() - began


def _most(waits: list[float]) -> float:
    """The 99th percentile."""
    return sorted(waits)[int(0.99 * (len(waits) - 1))]
