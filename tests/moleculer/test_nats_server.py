"""The program that stands in for nats-server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

from tests.eventually import PATIENCE_S
from tests.real_buses import free_port, wait_for


def greeting(port: int) -> tuple[socket.socket, bytes]:
    """A connection, and what the server says first."""
    wait_for(port, "the program")
    client = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    return client, client.recv(4096)


def test_it_serves_and_retires() -> None:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "tests.moleculer.nats_server",
        "-p",
        str(port),
        "--user",
        "u",
        "--pass",
        "p",
    ]
    with subprocess.Popen(command) as process:
        client, said = greeting(port)
        with client:
            assert said.startswith(b"INFO ") and b'"auth_required":true' in said
            client.sendall(b'CONNECT {"user":"u","pass":"p","verbose":false}\r\nPING\r\n')
            assert client.recv(100) == b"PONG\r\n"
            os.kill(process.pid, signal.SIGUSR2)
            assert b'"ldm":true' in client.recv(4096)
            process.terminate()
        assert process.wait(PATIENCE_S) == 0


def test_other_options_end_it() -> None:
    command = [sys.executable, "-m", "tests.moleculer.nats_server", "--tls"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "--tls" in done.stderr) == (1, True)
