"""Debian's nats-server, redis-server and mosquitto, started privately on loopback for tests that compare."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.eventually import PATIENCE_S, eventually

HOST = "127.0.0.1"

PROGRAMS = {"nats": "nats-server", "redis": "redis-server", "mqtt": "mosquitto"}

#: By transporter: the command, from a port and an empty folder.
Command = Callable[[int, Path], Sequence[str]]


def _mosquitto(port: int, folder: Path) -> Sequence[str]:
    settings = folder / "mosquitto.conf"
    # without the last one, answers wait for the client's ACK
    settings.write_text(f"listener {port} {HOST}\nallow_anonymous true\nset_tcp_nodelay true\n")
    return ["mosquitto", "-c", str(settings)]


SERVERS: dict[str, Command] = {
    "nats": lambda port, folder: ["nats-server", "-a", HOST, "-p", str(port)],
    "redis": lambda port, folder: [
        "redis-server",
        *("--bind", HOST, "--port", str(port), "--save", "", "--dir", str(folder)),
    ],
    "mqtt": _mosquitto,
}


def required(transporter: str) -> None:
    """Skip the test where the server is not installed."""
    program = PROGRAMS[transporter]
    if shutil.which(program) is None:
        pytest.skip(f"missing: {program} (apt-get install {program})")


@contextmanager
def real_bus(transporter: str) -> Iterator[str]:
    """The URL of a fresh server; stopped afterwards."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix=f"{transporter}-") as folder:
        command = SERVERS[transporter](port, Path(folder))
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                wait_for(port, command[0])
                yield f"{transporter}://{HOST}:{port}"
            finally:
                process.terminate()


def free_port() -> int:
    """One that nobody listens on at present."""
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


def wait_for(port: int, program: str) -> None:
    """Until it listens."""
    eventually(lambda: listens(port), f"{program} does not listen")


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    try:
        socket.create_connection((HOST, port), PATIENCE_S).close()
    except OSError:
        return False
    return True
