"""``fakebrokers conform`` from end to end: a child process, sockets, files, exit codes."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance.results import load

ROOT = Path(__file__).parents[3]
CORRECT = f"{sys.executable} -m conformance.clients.reference rabbitmq-stream"
#: The adapter of a library for which no scenario is.
NO_ROLES = (
    "from conformance.clients.adapter.kit import AdapterBase, run;"
    'run(type("A", (AdapterBase,), {"library": "a", "protocols": ("rabbitmq-stream",)})())'
)
BROKEN = f"{sys.executable} -m conformance.clients.mutants rabbitmq-stream confirm-by-position"


def fakebrokers(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "fakebrokers", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False)


def conform(adapter: str, *more: str, cwd: Path = ROOT) -> tuple[int, dict[str, Any]]:
    done = fakebrokers(
        "conform", "--adapter", adapter, "--protocol", "rabbitmq-stream", "--json", *more, cwd=cwd
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_the_document_of_the_contract() -> None:
    code, document = conform(CORRECT, "RMQS-1.01", "RMQS-3.06")
    assert code == document["exit_code"] == 0
    assert {
        "client",
        "client_version",
        "suite_version",
        "seed",
        "started",
        "seconds",
        "results",
        "summary",
        "complete",
    } <= set(document)
    assert [row["id"] for row in document["results"]] == ["RMQS-1.01", "RMQS-3.06"]
    assert set(document["results"][0]) == {
        "id",
        "protocol",
        "variant",
        "level",
        "verdict",
        "criterion",
        "tags",
        "seconds",
        "reason",
    }
    assert document["summary"] == {"pass": 2}


def test_a_report_into_a_place_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    report = ["--report", str(tmp_path / "file" / "report")]
    done = fakebrokers("conform", "--adapter", CORRECT, "--protocol", "rabbitmq-stream", *report, "RMQS-3.06")
    assert done.returncode == 3
    assert "cannot write there: Not a directory" in done.stderr and "Traceback" not in done.stderr


def test_two_reports_into_one_folder_keep_both_journals(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
    import pyarrow.parquet as pq

    for _ in range(2):
        conform(CORRECT, "--report", str(tmp_path), "RMQS-3.06")
    runs = [row for path in (tmp_path / "journal").glob("runs-*") for row in pq.read_table(path).to_pylist()]
    assert len({row["run"] for row in runs}) == 2
    assert len({row["name"] for row in runs}) == 1


def test_a_broken_client_fails_with_files_that_tell_why(tmp_path: Path) -> None:
    code, document = conform(BROKEN, "--report", str(tmp_path / "report"), "RMQS-3.02")
    assert code == 1
    assert document["results"][0]["verdict"] == "fail"
    assert document["results"][0]["criterion"]

    (row,) = load(tmp_path / "report" / "results.json").results
    assert row.acceptable and row.journal and row.diagram and row.source
    assert row.replay.startswith("fakebrokers conform")
    assert row.plan["faults"]

    suite = ElementTree.parse(tmp_path / "report" / "junit.xml").getroot()[0]
    rules = document["rules"]
    assert "ack-needs-confirm" in {rule["rule"] for rule in rules}
    assert all(rule["rows"] == ["RMQS-3.02"] for rule in rules)
    # What a rule finds may be for want of time, on a busy machine; the content of a row is not.
    assert {rule["verdict"] for rule in rules} <= {"fail", "inconclusive"}
    doubted = [rule["reason"] for rule in rules if rule["verdict"] != "fail"]
    assert all("client and harness" in reason for reason in doubted), "it says that they had to wait"
    failed = 1 + sum(rule["verdict"] == "fail" for rule in rules)
    assert (suite.get("failures"), suite.get("errors")) == (str(failed), "0")

    reproducer = tmp_path / "report" / "reproducers" / "test_rmqs_3_02.py"
    ast.parse(reproducer.read_text())
    assert "from fakebrokers.suite import scenarios" in reproducer.read_text()

    assert "RMQS-3.02" in (tmp_path / "report" / "index.html").read_text()
    assert list((tmp_path / "report" / "journal").glob("*.parquet"))

    results = [
        json.loads(path.read_text()) for path in (tmp_path / "report").glob("allure-results/*-result.json")
    ]
    assert len(results) == 1 + len(rules)
    assert sum(each["status"] == "failed" for each in results) == failed


def test_a_known_failure_is_no_failure(tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    known.write_text(
        'protocol = "rabbitmq-stream"\n[[defect]]\nid = "m"\ncause = "a mutant"\nrows = ["RMQS-3.02"]\n'
    )
    code, document = conform(BROKEN, "--expect", str(known), "RMQS-3.02")
    assert code == 0
    assert document["results"][0]["tags"][-1] == "expected"


def test_the_users_pytest_configuration_has_no_say(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\npython_files = *.py\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('loaded')\n")
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "__init__.py").write_text("raise RuntimeError('a foreign package')\n")
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "fakebrokers", "conform", "--adapter", CORRECT),
            *("--protocol", "rabbitmq-stream", "--json", "RMQS-3.06"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "--no-such-option"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"] == {"pass": 1}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["conform"], "either --client NAME or --adapter CMD"),
        (["conform", "--client", "rstreem"], "no bundled client 'rstreem'"),
        (["conform", "--adapter", CORRECT], "--protocol"),
        (["conform", "--adapter", CORRECT, "--protocol", "rabbitmq-stream", "RMQS-77.1"], "RMQS-77.1"),
        (["conform", "--adapter", CORRECT, "--protocol", "rabbitmq-stream", "--set", "some"], "smoke"),
        (["explain", "RMQS-77.1"], "RMQS-77.1"),
    ],
)
def test_wrong_usage_is_64_and_says_what_to_do(arguments: list[str], problem: str) -> None:
    done = fakebrokers(*arguments)
    assert done.returncode == 64
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--target", "rabbitmq-stream://127.0.0.1:1", "RMQS-3.01"], "nothing answers at 127.0.0.1:1"),
        (["--variant", "5.0"], "there is no scenario to run"),
        (["NET-2.07"], "this is no verdict on the client"),
    ],
)
def test_where_nothing_is_executed_that_is_said(arguments: list[str], sentence: str) -> None:
    adapter = f"{sys.executable} -c '{NO_ROLES}'"
    done = fakebrokers("conform", "--adapter", adapter, "--protocol", "rabbitmq-stream", *arguments)
    assert done.returncode == 2, done.stderr
    assert "nothing was executed" in done.stdout and sentence in done.stdout
    assert "Traceback" not in done.stderr


def test_what_is_skipped_takes_no_time() -> None:
    code, document = conform(f"{sys.executable} -c '{NO_ROLES}'", "RMQS-3.06")
    assert code == 2
    assert document["seconds"] == 0, "counted from the first row that ends, if none has begun"


def test_a_command_that_is_no_adapter_is_a_harness_error() -> None:
    done = fakebrokers(
        "conform", "--adapter", f"{sys.executable} -c pass", "--protocol", "rabbitmq-stream", "RMQS-3.06"
    )
    assert done.returncode == 3
    assert "adapter" in done.stderr
    assert "Traceback" not in done.stderr


def test_pytest_is_no_part_of_it() -> None:
    """It takes time to load, and its plugins and settings are the user's."""
    code = (
        "import sys\n"
        "from fakebrokers.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print([name for name in sys.modules if 'pytest' in name], file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code, "conform", "--adapter", CORRECT, "--protocol", "rabbitmq-stream"]
    done = subprocess.run([*command, "RMQS-3.06"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_list_and_explain() -> None:
    rows = json.loads(fakebrokers("list", "--json").stdout)
    assert {"id", "title", "level", "protocol", "variant", "section", "needs", "severity"} == set(rows[0])
    reported = fakebrokers("explain", "RMQS-3.09").stdout
    for part in ("Confirm lost, connection alive", "SHOULD", "R7:", "Never confirm", "stream-go-client#378"):
        assert part in reported


def test_explain_says_where_no_real_broker_was_at_hand() -> None:
    assert "No real broker" in fakebrokers("explain", "BMQ-3.05").stdout
    assert "No real broker" not in fakebrokers("explain", "RMQS-3.09").stdout
