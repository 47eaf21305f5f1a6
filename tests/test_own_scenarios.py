"""The example in docs/own-scenarios.md does what that page says, command by command."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.clients.mutants.registry import find_mutant
from conformance.clients.reference.registry import command
from tests.eventually import PATIENCE_S

TOP = Path(__file__).parents[1]
PAGE = (TOP / "docs" / "own-scenarios.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```\w+\n# (acme/\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CONSOLE = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CORRECT = shlex.join(command("rabbitmq-stream"))
DEFECT = shlex.join(find_mutant("rabbitmq-stream", "errors-confirm").command)


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """A folder that holds the folder of the page."""
    for name, text in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n{text}")
    return tmp_path


def run(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "fakebrokers", *arguments]
    env = {**os.environ, "PYTHONPATH": str(TOP)}
    return subprocess.run(
        words, cwd=cwd, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def conform(cwd: Path, adapter: str, *more: str) -> subprocess.CompletedProcess[str]:
    who = ("--adapter", adapter, "--protocol", "rabbitmq-stream", "--scenarios", "acme")
    return run(cwd, "conform", *who, *more, "ACME")


def test_it_is_listed_and_explained(acme: Path) -> None:
    rows = json.loads(run(acme, "list", "--scenarios", "acme", "--json").stdout)
    [own] = [row for row in rows if row["id"].startswith("ACME")]
    assert (own["id"], own["section"], own["protocol"]) == ("ACME-1.01", "ACME-1", "rabbitmq-stream")
    assert len(rows) > 300
    told = run(acme, "explain", "--scenarios", "acme", "acme-1.01").stdout
    assert "A refused order" in told and "A1: an order that the broker has refused goes back" in told


def test_its_mutant_is_caught(acme: Path) -> None:
    [told] = [text for text in CONSOLE if "mutants" in text]
    asked, *lines = told.splitlines()
    done = run(acme, *asked.split()[2:])
    assert (done.returncode, done.stdout.splitlines()) == (0, lines)


def test_mutants_of_a_folder_reach_workers_and_processes(acme: Path) -> None:
    """Two scenarios go to workers, and one of them wants the client in a process of its own."""
    catalogue, script = acme / "acme/catalogue/acme.toml", acme / "acme/orders.py"
    rows, script_text = catalogue.read_text(), script.read_text()
    row, other = (text.replace("1.01", "1.02") for text in (rows.partition("[[scen")[2], script_text))
    other = other.replace("roles", "process=True, roles").replace("refused_order", "refused_order_again")
    catalogue.write_text(f"{rows}\n[[scen{row}")
    script.with_name("again.py").write_text(other)
    done = run(acme, "mutants", "--scenarios", "acme", "--json")
    assert done.returncode == 0, done.stdout
    rows = json.loads(done.stdout)["scenarios"]
    assert [(row["id"], row["killed_by"]) for row in rows] == [
        ("ACME-1.01", ["acme-takes-no-for-yes"]),
        ("ACME-1.02", ["acme-takes-no-for-yes"]),
    ]


def test_the_kill_matrix_of_the_package_stays_ours(acme: Path) -> None:
    done = run(acme, "mutants", "--scenarios", "acme", "--write")
    assert done.returncode == 64 and "leave out --mutant and --scenarios" in done.stderr


def test_results_name_it_and_say_how_to_run_it_again(acme: Path) -> None:
    assert conform(acme, CORRECT).returncode == 0
    done = conform(acme, DEFECT, "--report", "report")
    assert done.returncode == 1, done.stderr
    [row] = json.loads((acme / "report" / "results.json").read_bytes())["results"]
    assert (row["id"], row["criterion"]) == ("ACME-1.01", "the-refused-order-ends-nacked")
    assert row["replay"].endswith("--protocol rabbitmq-stream --scenarios acme --seed 0 ACME-1.01")
    assert "ACME-1.01" in (acme / "report" / "index.html").read_text()
    assert "refuse the first order" in row["reproducer"]


def test_expectations_know_its_criteria(acme: Path) -> None:
    known = (
        'protocol = "rabbitmq-stream"\n[[defect]]\nid = "no-for-yes"\ncause = "takes no for yes"\n'
        'rows = ["ACME-1.01 the-refused-order-ends-nacked"]\n'
    )
    (acme / "known.toml").write_text(known)
    assert conform(acme, DEFECT, "--expect", "known.toml", "--report", "report").returncode == 0
    gate = run(acme, "gate", "report", "--expect", "known.toml", "--scenarios", "acme")
    assert gate.returncode == 0, gate.stderr
    (acme / "known.toml").write_text(known.replace("refused-order", "accepted-order"))
    done = conform(acme, DEFECT, "--expect", "known.toml")
    said = "warning: known.toml: ACME-1.01 has no criterion 'the-accepted-order-ends-nacked'; did you mean"
    assert done.returncode == 1 and said in done.stderr  # of the failure, which is not known now


@pytest.mark.full
def test_a_reproducer_holds_the_script_and_its_helpers(acme: Path) -> None:
    pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")
    for _ in range(3):  # 2: a busy machine kept the client waiting, and nothing was judged
        done = run(
            acme, "conform", "--client", "rstream", "--scenarios", "acme", "--report", "report", "ACME"
        )
        if done.returncode != 2:
            break
    assert done.returncode == 1, done.stderr
    place = acme / "report" / "reproducers" / "test_acme_1_01.py"
    text = place.read_text()
    assert "async def refused_order" in text and "async def order" in text
    assert not re.search("^(from|import) .*(acme|_shop|conformance)", text, re.MULTILINE)
    again = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", place],
        cwd=acme,
        env={"PATH": "/usr/bin", "PYTHONPATH": str(TOP)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "the refused order ends nacked" in again.stdout and "1 failed" in again.stdout


def test_what_is_refused_is_told_as_the_page_shows(acme: Path) -> None:
    catalogue = acme / "acme" / "catalogue" / "acme.toml"
    catalogue.write_text(catalogue.read_text().replace('"MUST"', '"HIGH"'))
    asked, shown = CONSOLE[-1].splitlines()
    done = run(acme, *asked.split()[2:])
    line = done.stderr.splitlines()[0].replace(str(acme), "/src")
    assert (done.returncode, line) == (64, shown)
