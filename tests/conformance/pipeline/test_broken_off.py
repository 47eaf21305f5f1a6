"""What ``fakebrokers analyze`` says of runs that have no end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")

from conformance.cli_analyze import broken_off, tell
from conformance.pipeline.schema import files_of
from fakebrokers.journal import RunJournal
from fakebrokers.journal.seal import seal

#: Writes a run and dies without an end.
DIES = """
import os, sys
from pathlib import Path
from fakebrokers.journal import RunJournal
journal = RunJournal(Path(sys.argv[1]), "cut", client="c", scenario="S-1", seed=1)
journal.op(1.0, "p", 1, "publish", "invoke", key="q", value="a")
journal.op(1.1, "p", 1, "publish", "ok", key="q", value="a")
os._exit(9)
"""


def test_runs_that_were_broken_off_are_counted_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = RunJournal(tmp_path, "whole", client="c", scenario="S-1", seed=1)
    whole.op(1.0, "p", 1, "publish", "invoke", key="q", value="a")
    whole.close(verdict="pass")
    assert subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], check=False).returncode == 9
    seal(tmp_path)
    assert broken_off(files_of([tmp_path])) == 1
    summary = {
        "rows": 3,
        "runs": 2,
        "broken_off": 1,
        "seconds": 1.0,
        "anomalies": {},
        "allowed": {},
        "out": "x",
    }
    tell(summary)
    told = capsys.readouterr().out
    assert "1 of 2 runs were broken off" in told
    assert "No anomalies." not in told
    tell({**summary, "broken_off": 0})
    assert "No anomalies. Tables: x" in capsys.readouterr().out
