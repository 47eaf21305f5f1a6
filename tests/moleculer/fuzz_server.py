"""Mutated recordings against a running server, by sockets: what `tests.moleculer.fuzz` does in memory.

python -m tests.moleculer.fuzz_server nats 1000000

The server is a process of its own. Nothing may come on its stderr, its memory stays what it is, and a second
client, which behaves, is served all the while.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import IO, NamedTuple

from fakebrokers.core.dialect import Login, Speaker
from fakebrokers.moleculer.mqtt import frames as mqtt
from fakebrokers.moleculer.mqtt.codec import MqttCodec
from fakebrokers.moleculer.protocol import PROTOCOL
from tests.moleculer.fuzz import mutated, recorded

#: Pieces on one connection, and between two looks at the server.
PER_CONNECTION, PER_LOOK = 50, 500
#: Pieces between two questions of the second client; behind an answer a connection shows that it has ended.
PER_QUESTION = 4
#: Pieces before memory is looked at for the first time: until then caches and the journal fill.
WARM_UP = 0.2

SERVE = """
import sys
from fakebrokers import Moleculer
transporter = sys.argv[1]
bus = Moleculer(transporter=transporter, journal_limit=1000, profile="0.14", gossip_s=0.1).start()
nodes = [bus.node(f"n{x}", {"bs": {"echo": lambda ctx: ctx.params}}, heartbeat_s=0) for x in "AB"]
print(bus.node_url("nA").split("/")[2].split(":")[1] if transporter == "tcp" else bus.port, flush=True)
for line in sys.stdin:
    bus.check()
    for node in bus.broker.nodes.values():
        node.received.clear()
        node.broken.clear()
        node.calls.orphans.clear()
    print("fine", flush=True)
bus.check()
bus.stop()
"""


class Outcome(NamedTuple):
    """What came of it; memory in KiB, waiting in seconds."""

    connections: int
    grown: int
    longest_wait: float
    stderr: str


class SecondClient:
    """A client that behaves and wants its answers."""

    def __init__(self, transporter: str, port: int) -> None:
        self._speaker: Speaker | None = None
        self._address = ("127.0.0.1", port)
        self.longest_wait = 0.0
        if transporter == "tcp":  # nodes answer on connections of their own: there is nothing to read
            return
        self._speaker = PROTOCOL.wire(transporter).load_dialect().speaker(Login())
        self._socket = socket.create_connection(self._address, timeout=30)
        if transporter == "mqtt":
            self._socket.sendall(MqttCodec().encode(mqtt.Connect("second", 0)))
            while not self._speaker.question():
                self._hear()

    def ask(self) -> None:
        """Ask, and wait for the answer; without a question see that connects are accepted."""
        began = time.perf_counter()
        if self._speaker is None:
            socket.create_connection(self._address, timeout=30).close()
        else:
            self._socket.sendall(self._speaker.question())
            while not self._hear():
                pass
        self.longest_wait = max(self.longest_wait, time.perf_counter() - began)

    def close(self) -> None:
        """Hang up."""
        if self._speaker is not None:
            self._socket.close()

    def _hear(self) -> bool:
        assert self._speaker is not None
        data = self._socket.recv(1 << 16)
        assert data, "the second client was cut off"
        return any([self._speaker.is_answer(frame) for frame, _ in self._speaker.codec.feed(data)])


class Sender:
    """Connections that say what comes, and do not care how they end."""

    def __init__(self, port: int, opening: bytes) -> None:
        self._port = port
        self._opening = opening
        self._socket: socket.socket | None = None
        self._said = 0
        self.connections = 0

    def say(self, piece: bytes) -> None:
        """Say something, on a new connection where the last one has ended or is worn out."""
        if self._socket is None or self._said >= PER_CONNECTION:
            self.close()
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=30)
            self._said = 0
            self.connections += 1
            if self.connections % 4:
                piece = self._opening + piece
        self._said += 1
        try:
            self._socket.settimeout(30)
            self._socket.sendall(piece)
        except OSError:
            self.close()

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


@contextlib.contextmanager
def serving(transporter: str, stderr: IO[bytes]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The server's process and its port."""
    command = [sys.executable, "-W", "error", "-c", SERVE, transporter]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            yield process, int(process.stdout.readline() or 0)
        finally:
            process.stdin.close()
            process.wait(60)


def run(transporter: str, count: int, folder: Path, seed: int = 0) -> Outcome:
    """Feed `count` pieces, every other one mutated. Raises when the server fails or hangs."""
    random, pieces, log = Random(seed), recorded(transporter), folder / f"{transporter}.stderr"
    warm, memory = int(count * WARM_UP), [0]
    with log.open("w+b") as stderr:
        with serving(transporter, stderr) as (process, port):
            opening = pieces[0] if transporter == "mqtt" else b""  # without CONNECT nothing else counts
            sender, second = Sender(port, opening), SecondClient(transporter, port)
            for number in range(count):
                piece = random.choice(pieces)
                sender.say(piece if random.random() < 0.5 else mutated(piece, random))
                if number % PER_QUESTION == 0:
                    second.ask()
                    sender.listen()
                if number % PER_LOOK == 0:
                    _look(process)
                    memory = [*memory, _resident(process.pid)] if number > warm else [_resident(process.pid)]
            sender.close()
            second.close()
        found = log.read_text(errors="replace")
    assert process.returncode == 0, found
    return Outcome(sender.connections, memory[-1] - memory[0], second.longest_wait, found)


def _look(process: subprocess.Popen[str]) -> None:
    """Let the server raise what went wrong inside."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "fine\n", "the server has ended"


def _resident(pid: int) -> int:
    """KiB of memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def main() -> None:
    """The command line."""
    import tempfile

    transporter, count = sys.argv[1], int(sys.argv[2])
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = run(transporter, count, Path(folder), seed=1)
    seconds = time.perf_counter() - began
    print(
        f"{transporter}: {count} pieces, {found.connections} connections, {seconds:.0f} s, "
        f"grown by {found.grown} KiB, longest wait of the second client {found.longest_wait * 1e3:.0f} ms"
    )
    assert found.stderr == "", found.stderr
    assert found.grown < 16 * 1024, "memory is not flat"


if __name__ == "__main__":
    main()
