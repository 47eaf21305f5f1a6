"""How `serve` ends: whatever tells it to, and whatever its fakes do at that time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fakebrokers.commands import ExitCode
from tests.eventually import PATIENCE_S

ROOT = Path(__file__).parent.parent

#: A fake whose thread never answers again; its process is told to end by itself, so that nobody waits.
STUCK = """
import signal, threading
from fakebrokers import serving
from fakebrokers.core.loop import loop_thread
serving.STUCK_S = 0.05
asked = serving.told_to_end()
loop_thread().post(threading.Event().wait)
signal.raise_signal(signal.SIGTERM)
assert asked.is_set()
loop_thread().call(print, "stopped")
"""


def test_sigterm_ends_a_process_whose_fakes_do_not_answer() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (ExitCode.HARNESS, "")
    assert (
        done.stderr.startswith("Error: the fakes have not answered for 0.05 s")
        and done.stderr.count("\n") == 1
    )


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP here")
@pytest.mark.parametrize("nohup", [False, True])
def test_a_terminal_that_goes_ends_it_in_order_unless_nohup_says_otherwise(
    tmp_path: Path, nohup: bool
) -> None:
    # a shell cannot undo what whoever started these tests ignores, env can
    before = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"] if nohup else ["env", "--default-signal=HUP"]
    served = subprocess.Popen(
        [*before, sys.executable, "-m", "fakebrokers", "serve", "narconi", "--journal", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert served.stdout is not None and served.stdout.readline().startswith("READY")
    served.send_signal(signal.SIGHUP)
    if nohup:
        os.kill(served.pid, signal.SIGTERM)
    out, errors = served.communicate(timeout=PATIENCE_S)
    assert (out, errors, served.returncode) == ("", "", ExitCode.OK)
