"""Debian's rabbitmq-server, started privately on loopback for the tests that compare with it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.eventually import eventually
from tests.real_buses import HOST, listens

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
#: It takes 10 s of a processor.
START_S = 150.0


class RealRabbit(NamedTuple):
    """Where it listens for the stream protocol."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """For ``conform --target``."""
        return f"rabbitmq-stream://guest:guest@{self.host}:{self.port}"


def required() -> None:
    """Skip the test where the server is not installed."""
    if not SERVER.exists() or shutil.which("erl") is None:
        pytest.skip("missing: rabbitmq-server (apt-get install rabbitmq-server)")


@contextmanager
def real_rabbitmq() -> Iterator[RealRabbit]:
    """A fresh node with the stream plugin; stopped and removed afterwards."""
    required()
    stream, amqp, dist, epmd = _free_ports(4)
    with tempfile.TemporaryDirectory(prefix="rabbit-") as folder:
        base = Path(folder)
        (base / "enabled_plugins").write_text("[rabbitmq_stream].\n")
        (base / "rabbitmq.conf").write_text(
            f"listeners.tcp.local = {HOST}:{amqp}\n"
            f"stream.listeners.tcp.1 = {HOST}:{stream}\n"
            f"stream.advertised_host = {HOST}\n"
            f"stream.advertised_port = {stream}\n"
            "loopback_users = none\n"
        )
        env = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "RABBITMQ_NODENAME": f"fakebrokers{stream}@localhost",
            "RABBITMQ_NODE_PORT": str(amqp),
            "RABBITMQ_DIST_PORT": str(dist),
            "ERL_EPMD_PORT": str(epmd),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_MNESIA_BASE": str(base / "mnesia"),
            "RABBITMQ_LOG_BASE": str(base / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(base / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(base / "rabbitmq"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        with (base / "console.log").open("wb") as console:
            process = subprocess.Popen(
                [SERVER],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        try:
            _wait_for(stream, process, base / "console.log")
            yield RealRabbit(HOST, stream)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            _end_epmd(epmd)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait_for(port: int, process: subprocess.Popen[bytes], console: Path) -> None:
    def said() -> str:
        return f"rabbitmq-server did not start:\n{console.read_text(errors='replace')[-2000:]}"

    def has_started() -> bool:
        if process.poll() is not None:
            raise RuntimeError(said())
        return listens(port)

    eventually(has_started, said, patience_s=START_S)


def _end_epmd(port: int) -> None:
    """The port mapper daemonises itself, so it is not in the process group."""
    epmd = shutil.which("epmd")
    if epmd is not None:
        subprocess.run(
            [epmd, "-port", str(port), "-kill"],
            env={"PATH": os.environ["PATH"], "ERL_EPMD_RELAXED_COMMAND_CHECK": "1"},
            capture_output=True,
            check=False,
        )
