"""``fakebrokers mutants`` when it is told to end, and when a mutant gets away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.eventually import eventually

ROOT = Path(__file__).parents[4]
COMMAND = [sys.executable, "-m", "fakebrokers", "mutants"]
LIMIT_S = 120.0


def relatives(mark: str) -> set[int]:
    """The processes with the mark in their environment."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9), (signal.SIGINT, 130)]
)
def test_no_worker_outlives_it(number: signal.Signals, code: int) -> None:
    mark = f"MUTANTS_TEST={os.getpid()}-{number}"
    name, _, value = mark.partition("=")
    env = {**os.environ, "PYTHONPATH": str(ROOT), name: value}
    with subprocess.Popen(
        [*COMMAND, "--protocol", "rabbitmq-stream", "RMQS-3"],
        env=env,
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        eventually(lambda: len(relatives(mark)) >= 4, "it started its workers", patience_s=LIMIT_S)
        child.send_signal(number)
        out, _ = child.communicate(timeout=LIMIT_S)
    assert child.returncode == code, out
    eventually(lambda: not relatives(mark), "no worker is left")
