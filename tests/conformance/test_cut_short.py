"""Ctrl-C, SIGTERM or worse in the middle of a run: what had ended is kept, and never called a good end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.eventually import eventually

LIMIT_S = 120.0
CONFORM = [sys.executable, "-m", "fakebrokers", "conform", "--client", "reference-rabbitmq-stream"]
GREEN = ">conformant<"


def interrupted(
    command: list[str], sign: Path, number: signal.Signals = signal.SIGINT
) -> subprocess.CompletedProcess[str]:
    """Run the command and send it the signal when 15 scenarios have begun a journal below `sign`."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as child:
        try:
            eventually(lambda: len(list(sign.glob("*.ops"))) >= 15, "15 scenarios began", patience_s=LIMIT_S)
        finally:
            child.send_signal(number)
        out, _ = child.communicate(timeout=LIMIT_S)
    return subprocess.CompletedProcess(command, child.returncode, out)


@pytest.mark.full
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_conform_reports_what_had_ended(tmp_path: Path, number: signal.Signals, code: int) -> None:
    done = interrupted([*CONFORM, "--report", str(tmp_path), "-n", "4"], tmp_path / "journal", number)
    assert done.returncode == code, done.stdout
    results = json.loads((tmp_path / "results.json").read_bytes())
    assert (results["complete"], results["exit_code"]) == (False, code)
    assert 0 < len(results["results"]) < 100
    assert f"cut short after {len(results['results'])} of 1" in done.stdout
    page = (tmp_path / "index.html").read_text()
    assert "This run was cut short" in page and GREEN not in page
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()[0]
    assert suite.get("errors") == "1"
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.full
def test_a_run_that_is_killed_leaves_no_older_verdict(tmp_path: Path) -> None:
    for name in ("index.html", "junit.xml"):
        (tmp_path / name).write_text("of an earlier run: conformant")
    done = interrupted([*CONFORM, "--report", str(tmp_path)], tmp_path / "journal", signal.SIGKILL)
    assert done.returncode == -signal.SIGKILL
    results = json.loads((tmp_path / "results.json").read_bytes())
    assert (results["complete"], results["exit_code"]) == (False, 2)
    assert not (tmp_path / "index.html").exists() and not (tmp_path / "junit.xml").exists()


@pytest.mark.full
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_main_job_reports_what_had_ended(tmp_path: Path, number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "conformance.campaign", "--client", "reference-rabbitmq-stream"]
    done = interrupted([*command, "--report", str(tmp_path), "-n", "4"], tmp_path / "journal", number)
    assert done.returncode == code, done.stdout
    assert "This run was cut short" in done.stdout
    page = (tmp_path / "index.html").read_text()
    assert "This run was cut short" in page and GREEN not in page
    results = tmp_path / "reference-rabbitmq-stream-rabbitmq-stream" / "results.json"
    ended = json.loads(results.read_bytes())["results"]
    assert 0 < len(ended) < 100
    assert ended[0]["id"] in page
