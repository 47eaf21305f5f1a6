"""Ctrl-C in the middle of a run: what had ended is reported, and nothing is left running."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LIMIT_S = 60.0


def interrupted(command: list[str], sign: Path) -> subprocess.CompletedProcess[str]:
    """Run the command and press Ctrl-C when 15 scenarios have begun a journal below `sign`."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as child:
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline and len(list(sign.glob("*.ops"))) < 15:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=LIMIT_S)
    return subprocess.CompletedProcess(command, child.returncode, out)


@pytest.mark.timeout(150)
def test_conform_reports_what_had_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fakebrokers", "conform", "--client", "reference-rabbitmq-stream"]
    done = interrupted([*command, "--report", str(tmp_path), "-n", "4"], tmp_path / "journal")
    assert done.returncode == 130, done.stdout
    results = json.loads((tmp_path / "results.json").read_bytes())
    assert 0 < len(results["results"]) < 100
    assert f"cut short after {len(results['results'])} scenarios" in done.stdout
    assert (tmp_path / "index.html").exists()
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.timeout(150)
def test_the_main_job_reports_what_had_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "conformance.campaign", "--client", "reference-rabbitmq-stream"]
    done = interrupted([*command, "--report", str(tmp_path), "-n", "4"], tmp_path / "journal")
    assert done.returncode == 130, done.stdout
    assert "This run was cut short" in done.stdout
    page = (tmp_path / "index.html").read_text()
    assert "This run was cut short" in page
    results = tmp_path / "reference-rabbitmq-stream-rabbitmq-stream" / "results.json"
    ended = json.loads(results.read_bytes())["results"]
    assert 0 < len(ended) < 100
    assert ended[0]["id"] in page
