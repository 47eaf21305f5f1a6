"""How long sealing a journal takes on one core, and how much memory."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.rabbitmq_stream.frames import FRAMES, Publish, PublishConfirm

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")

pytestmark = [pytest.mark.benchmark, pytest.mark.full, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
#: Seals in a process of its own, bound to one core; prints rows, CPU seconds and bytes at the most.
_SEAL = """
import json, os, sys, time
from pathlib import Path
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
import numpy, pyarrow.parquet
from fakebrokers.journal.seal import seal
begun = time.process_time()
rows = seal(Path(sys.argv[1])).rows
cpu = time.process_time() - begun
# not ru_maxrss, which a child inherits from what the parent was
most = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([rows, cpu, most * 1024]))
"""


def frames(folder: Path, runs: int, records: int) -> None:
    """Runs of frames as the fakes write them: publishes and their confirms, ten messages each."""
    for number in range(runs):
        sink = RunJournal(folder, f"run-{number}", client="alpha", scenario="RMQS-3.01")
        journal = Journal(FRAMES)
        journal.sink = sink
        for at in range(records // 2):
            ids = struct.pack(">10Q", *range(10 * at, 10 * at + 10))
            journal.add(at / 1e4, "c1", Tap.IN, Publish(1, 10, ids, bytes(40), 10), 140)
            journal.add(at / 1e4, "c1", Tap.OUT, PublishConfirm(1, ids), 100)
            if at % 100 == 99:
                journal.flush()
        journal.flush()
        sink.close(verdict="pass")


def ops(folder: Path, runs: int, records: int) -> None:
    """Runs of what clients do: each message is sent, acknowledged and delivered."""
    for number in range(runs):
        run = RunJournal(folder, f"run-{number}", client="alpha", scenario="RMQS-3.01")
        for at in range(records // 3):
            key = {"key": "orders", "value": f"{number:08x}{at:08x}"}
            run.op(at / 1e4, "p1", at, "publish", "invoke", **key)
            run.op(at / 1e4, "p1", at, "publish", "ok", wire_key=str(at), **key)
            run.op(at / 1e4, "c1", None, "deliver", "ok", offset=at, **key)
        run.close(verdict="pass")


@pytest.mark.parametrize("write", [frames, ops])
@pytest.mark.parametrize(("runs", "records"), [(300, 6_600), (1, 2_000_000)], ids=["many runs", "one run"])
def test_records_per_second_and_memory(
    tmp_path: Path, write: object, runs: int, records: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """At least 300,000 records for each CPU second, below 200 MB whatever the size of a run."""
    assert callable(write)
    write(tmp_path, runs, records)
    command = [sys.executable, "-c", _SEAL, str(tmp_path)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    rows, cpu, most = json.loads(said)
    with capsys.disabled():
        print(f"{rows:,} records: {rows / cpu:,.0f} for each CPU second, {most / 1e6:.0f} MB")
    assert rows > 0.99 * runs * records - runs
    assert most < 200e6
    assert rows / cpu > 300_000
