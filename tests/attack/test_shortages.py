"""Too many open files, ports and paths that are taken: told as what they are, never as a defect."""

from __future__ import annotations

import errno
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fakebrokers import PZQ, RabbitMQStream
from fakebrokers.errors import ResourceError, shortage
from tests.benchmarks.stream_load import Connection
from tests.eventually import PATIENCE_S, eventually

ENOUGH = 40  #: descriptors that a process needs to come up


@contextmanager
def served(*words: str, files: int = 1024) -> Iterator[subprocess.Popen[str]]:
    """``fakebrokers serve`` in a process that may have only this many files open."""
    limit = f'ulimit -n {files}; exec "$0" -m fakebrokers serve "$@"'
    command = ["sh", "-c", limit, sys.executable, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.terminate()
    _, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, errors


def test_more_clients_than_descriptors() -> None:
    """It is told once, and a client that comes when others have gone is served."""
    with served("rabbitmq-stream", files=ENOUGH) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        clients = [socket.create_connection(("127.0.0.1", port), PATIENCE_S) for _ in range(ENOUGH + 20)]
        time.sleep(1.2)  # it tries again ten times a second
        for client in clients:
            client.close()
        Connection("127.0.0.1", port).close()
        code, errors = end(process)
    assert errors.strip() == (
        "Error: Too many open files: this process may open no more files and sockets; 'ulimit -n' allows more"
    )
    assert code == 3


def test_in_a_test_it_is_an_error_of_its_own() -> None:
    with RabbitMQStream() as broker:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with socket.socket() as client:
            resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, hard))
            try:
                client.connect((broker.host, broker.port))
                eventually(lambda: broker.engine.errors)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            with pytest.raises(ResourceError, match="ulimit -n"):
                broker.check()


@pytest.mark.parametrize("protocol", ["rabbitmq-stream", "pzq"])
def test_too_few_descriptors_to_start(protocol: str) -> None:
    for files in range(8, ENOUGH, 4):
        with served(protocol, files=files) as process:
            assert process.stdout is not None
            if process.stdout.readline():
                break
            _, errors = process.communicate(timeout=PATIENCE_S)
            assert process.returncode in (1, 3)
            if "Traceback" not in errors:  # with fewer Python itself cannot import
                assert "ulimit -n" in errors and "--port 0" not in errors and "defect" not in errors
    else:
        pytest.fail(f"does not start with {ENOUGH} descriptors")


def test_what_is_a_shortage() -> None:
    assert "ulimit -n" in str(shortage(OSError(errno.EMFILE, "x")))
    assert "free some room" in str(shortage(OSError(errno.ENOSPC, "x")))
    for error in (OSError(errno.EADDRINUSE, "x"), OSError("x"), ValueError(errno.EMFILE)):
        assert shortage(error) is None


@pytest.mark.parametrize("flag", ["--port", "--management", "--control"])
def test_the_port_that_is_taken_is_named(flag: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with served("rabbitmq-stream", flag, port) as process:
            _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3
    assert port in errors and f"{flag} 0 takes any free port" in errors


def test_a_host_that_is_not_here() -> None:
    with served("rabbitmq-stream", "--host", "192.0.2.1") as process:
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert "--host has to be an address of this machine" in errors and "--port 0" not in errors


# PZQ's monitor has a path in the file system


def test_a_file_at_the_monitor_s_path_stays(tmp_path: Path) -> None:
    path = tmp_path / "monitor"
    path.write_text("precious")
    broker = PZQ(monitor=f"ipc://{path}")
    with pytest.raises(OSError, match="the path is a file and no socket"):
        broker.start()
    assert path.read_text() == "precious"
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        broker.start()
    assert path.is_symlink()


def test_a_socket_that_somebody_listens_at_stays(tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/monitor"
    with PZQ(monitor=endpoint), pytest.raises(OSError, match="Address already in use: ipc://"):
        PZQ(monitor=endpoint).start()


def test_a_socket_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "monitor"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with PZQ(monitor=f"ipc://{path}") as broker:
        assert broker.monitor_url == f"ipc://{path}"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    assert not path.exists()


def test_nothing_is_left_at_the_path(tmp_path: Path) -> None:
    """Neither after stop, nor by `serve` that is told to end; and what restarts has it again."""
    path = tmp_path / "monitor"
    with PZQ(monitor=f"ipc://{path}") as broker:
        broker.crash()
        broker.call(lambda: None)  # it closes when what it said has left
        assert not path.exists()
        broker.restart()
        assert path.is_socket()
    assert not path.exists()
