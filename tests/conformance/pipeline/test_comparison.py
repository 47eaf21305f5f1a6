"""Two analyses side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")

from conformance.cli.analyze import analyze
from conformance.cli.suite import conform_command
from conformance.gate import Change
from conformance.pipeline.comparison import compare, load_baseline, of_one_client
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError
from fakebrokers.journal import RunJournal


def cell(scenario: str = "S-1", version: str = "1", client: str = "c", **more: Any) -> dict[str, Any]:
    base = {"client": client, "client_version": version, "protocol": "pzq", "variant": "", "runs": 3}
    return {**base, "scenario": scenario, "verdicts": {"pass": 3}, "affected": {}, **more}


def changes(now: list[dict[str, Any]], then: list[dict[str, Any]]) -> list[tuple[str, str, Change]]:
    found = compare({"matrix": now}, {"matrix": then}, "earlier")
    assert found.worse == sum(row.finding.change in (Change.REGRESSED, Change.VANISHED) for row in found.rows)
    return [(row.finding.id, row.finding.criterion, row.finding.change) for row in found.rows]


FAILING, SOMETIMES = {"verdicts": {"fail": 3}}, {"verdicts": {"pass": 2, "fail": 1}}
LOSES, ONCE = {"affected": {"lost-write": 3}}, {"affected": {"lost-write": 1}}


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        ({}, {}, []),
        ({}, FAILING, [("S-1", "", Change.REGRESSED)]),
        ({}, SOMETIMES, [("S-1", "", Change.REGRESSED)]),
        (FAILING, {}, [("S-1", "", Change.FIXED)]),
        (FAILING, FAILING, [("S-1", "", Change.FAILS)]),
        (FAILING, SOMETIMES, [("S-1", "", Change.INTERMITTENT)]),
        ({}, {"verdicts": {"skipped: unsupported": 3}}, [("S-1", "", Change.VANISHED)]),
        ({}, {"verdicts": {"inconclusive": 3}}, [("S-1", "", Change.UNJUDGED)]),
        ({"verdicts": {"inconclusive": 1}}, {"verdicts": {"inconclusive": 1}}, []),
        ({}, LOSES, [("S-1", "lost-write", Change.REGRESSED)]),
        (LOSES, {}, [("S-1", "lost-write", Change.FIXED)]),
        (LOSES, ONCE, [("S-1", "lost-write", Change.INTERMITTENT)]),
        ({"verdicts": {"": 3}}, {"verdicts": {"": 3}, **LOSES}, [("S-1", "lost-write", Change.REGRESSED)]),
        (None, {}, [("S-1", "", Change.NEW)]),
        (None, LOSES, [("S-1", "lost-write", Change.FAILS), ("S-1", "", Change.NEW)]),
        (LOSES, None, [("S-1", "", Change.VANISHED)]),
    ],
)
def test_one_cell(then: Any, now: Any, expected: list[tuple[str, str, Change]]) -> None:
    other = cell("S-9")
    after = [other, *([cell(**now)] if now is not None else [])]
    before = [other, *([cell(**then)] if then is not None else [])]
    assert changes(after, before) == expected


def test_versions_are_compared_with_themselves_and_else_with_the_one_that_is_left() -> None:
    assert changes([cell(version="2", **FAILING)], [cell(version="1")]) == [("S-1", "", Change.REGRESSED)]
    both = [cell(version="1"), cell(version="2", **FAILING)]
    assert changes(both, both) == [("S-1", "", Change.FAILS)]
    assert changes(both, [cell(version="1")]) == [("S-1", "", Change.FAILS)]  # nothing to compare it with
    assert changes([cell(client="d")], [cell()]) == [("S-1", "", Change.VANISHED), ("S-1", "", Change.NEW)]
    (row,) = compare({"matrix": [cell(version="2", **LOSES)]}, {"matrix": [cell()]}, "earlier").rows
    assert (row.client, row.version, row.version_before) == ("c", "2", "1")
    assert (row.finding.failed, row.finding.runs) == (3, 3)


def test_the_command_says_what_changed_and_ends_with_4(tmp_path: Path) -> None:
    for folder, end in (("then", "ok"), ("now", "fail")):
        for number in range(2):
            written = RunJournal(tmp_path / folder, f"r{number}", client="c", scenario="S-1", protocol="pzq")
            written.op(1.0, "p", 1, "publish", "invoke", key="q", value="a")
            written.op(1.1, "p", 1, "publish", end if number else "ok", key="q", value="a")  # type: ignore[arg-type]
            written.op(1.2, "c", None, "deliver", "ok", key="q", value="a", offset=0)
            written.close(verdict="pass")

    def run(folder: str, *options: str) -> Any:
        command = [str(tmp_path / folder), "--out", str(tmp_path / "out"), "--engine", "local", *options]
        return CliRunner().invoke(analyze, command, standalone_mode=False)

    assert run("then").return_value == ExitCode.OK
    done = run("now", "--baseline", str(tmp_path / "out"), "--json")
    assert done.return_value == ExitCode.REGRESSION
    summary = json.loads(done.stdout)
    assert (summary["changes"], summary["worse"]) == ({"regressed": 1}, 1)
    (row,) = json.loads((tmp_path / "out" / "analysis.json").read_text())["comparison"]["rows"]
    assert (row["finding"]["id"], row["finding"]["criterion"]) == ("S-1", "G1a")
    assert (row["finding"]["failed"], row["finding"]["runs"]) == (1, 2)
    again = run("now", "--baseline", str(tmp_path / "out" / "analysis.json"))
    assert again.return_value == ExitCode.OK
    assert "intermittent 1" in again.output
    assert "intermittent: c S-1/pzq G1a in 1 of 2 runs" in again.output


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"matrix": [{"runs": 1}]}'])
def test_what_is_no_baseline_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(UsageError, match="expected an earlier analysis"):
        load_baseline(str(tmp_path))
    (tmp_path / "analysis.json").write_text(content)
    with pytest.raises(UsageError, match="expected an analysis"):
        load_baseline(str(tmp_path))


def test_of_a_baseline_only_what_was_asked_for_can_vanish() -> None:
    rows = [cell("S-1"), cell("S-1", version="2"), cell("S-2"), cell(client="d"), cell(protocol="narconi")]
    document = {"matrix": rows, "rows": 9}
    assert of_one_client(document, "c", "pzq") == {"matrix": rows[:3], "rows": 9}
    assert of_one_client(document, "c", "pzq", ["S-1"])["matrix"] == rows[:2]


def test_a_report_says_what_changed_since_an_earlier_one(tmp_path: Path) -> None:
    """The earlier one may stand in the same folder: it is read before anything is written there."""

    def conform(*options: str) -> str:
        command = ["--client", "reference-pzq", "--report", str(tmp_path / "r"), *options, "PZQ-1.01"]
        assert CliRunner().invoke(conform_command, command, standalone_mode=False).return_value == ExitCode.OK
        return (tmp_path / "r" / "index.html").read_text()

    assert 'id="comparison"' not in conform()
    path = tmp_path / "r" / "analysis" / "analysis.json"
    document = json.loads(path.read_text())
    (mine,) = document["matrix"]
    runs = mine["runs"]
    document["matrix"] = [{**mine, "verdicts": {"fail": runs}}, {**mine, "scenario": "PZQ-9.99"}]
    path.write_text(json.dumps(document))
    text = conform("--baseline", str(tmp_path / "r"))
    assert 'class="since"' in text and ">1 fixed</a>" in text
    (row,) = json.loads(path.read_text())["comparison"]["rows"]
    assert (row["finding"]["id"], row["finding"]["before"], row["finding"]["now"]) == (
        "PZQ-1.01",
        "fail",
        "pass",
    )


def test_a_baseline_is_for_a_report(tmp_path: Path) -> None:
    command = ["--client", "reference-pzq", "--baseline", str(tmp_path)]
    done = CliRunner().invoke(conform_command, command, standalone_mode=False)
    assert isinstance(done.exception, UsageError) and "add --report" in str(done.exception)
