"""Several versions of one client: what an upgrade makes worse, and what better."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conformance.cli.versions import judge_versions, versions_of
from conformance.clients.adapter.base import AdapterFailed
from conformance.gate import Change
from conformance.results import Results, RowResult, Verdict
from conformance.upgrade import upgrade, upgrades
from fakebrokers.cli import main
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError


def row(id: str, verdict: str, **fields: Any) -> RowResult:
    given = {"level": "MUST", "title": f"title of {id}", "criterion": "" if verdict == "pass" else "c"}
    return RowResult(
        id=id, protocol="rabbitmq-stream", variant="", verdict=Verdict(verdict), **(given | fields)
    )


def run(version: str, *rows: RowResult, **fields: Any) -> Results:
    code = 1 if any(each.verdict is Verdict.FAIL for each in rows) else 0
    about = {"suite_version": "1", "seed": 0, "started": "2026-01-01T00:00:00Z", "seconds": 1.0}
    return Results(
        client="lib", client_version=version, results=rows, **(about | {"exit_code": code} | fields)
    )


OLD = run("1.0", row("A-1", "pass"), row("A-2", "fail"), row("A-3", "fail"), row("A-4", "pass", level="MAY"))


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("rstream", ["rstream"]),
        ("rstream==1.0", ["rstream==1.0"]),
        ("rstream==1.0,==1.1", ["rstream==1.0", "rstream==1.1"]),
        ("rstream==1.0, rstream==1.1,rstream", ["rstream==1.0", "rstream==1.1", "rstream"]),
    ],
)
def test_what_several_versions_are_called(asked: str, names: list[str]) -> None:
    assert versions_of(asked) == names


@pytest.mark.parametrize("asked", ["rstream==1.0,rbfly==1.0", "rstream==1.0,1.1", "rstream==1.0,==1.0"])
def test_they_are_different_versions_of_one_client(asked: str) -> None:
    with pytest.raises(UsageError):
        versions_of(asked)


def test_nothing_gets_worse() -> None:
    newer = run(
        "1.1", row("A-1", "pass"), row("A-2", "pass"), row("A-3", "fail"), row("A-4", "pass", level="MAY")
    )
    found = upgrade(OLD, newer)
    assert found.answer == "May I upgrade lib from 1.0 to 1.1? Yes: no rows worse, 1 row better"
    assert [(each.id, each.change) for each in found.findings] == [("A-2", Change.FIXED)]
    assert found.exit_code == ExitCode.OK  # A-3 fails in both


@pytest.mark.parametrize("now", ["fail", "skipped: unsupported", None])
def test_a_row_gets_worse_whatever_its_level(now: str | None) -> None:
    rows = [row("A-1", "pass"), row("A-2", "fail"), row("A-3", "fail")]
    newer = run("1.1", *rows, *([row("A-4", now, level="MAY")] if now else []))
    found = upgrade(OLD, newer)
    assert [each.id for each in found.findings] == ["A-4"]
    assert (found.worse, found.better, found.exit_code) == (1, 0, ExitCode.REGRESSION)
    assert found.answer == "May I upgrade lib from 1.0 to 1.1? No: 1 row worse, no rows better"


def test_another_failure_is_told_and_stops_nobody() -> None:
    newer = run("1.1", *OLD.results[:2], row("A-3", "fail", criterion="other"), OLD.results[3])
    found = upgrade(OLD, newer)
    assert [each.change for each in found.findings] == [Change.OTHER_FAILURE]
    assert found.exit_code == ExitCode.OK


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"complete": False}, ExitCode.INCONCLUSIVE),
        ({"exit_code": 2}, ExitCode.INCONCLUSIVE),
        ({"exit_code": 3}, ExitCode.HARNESS),
    ],
)
def test_a_run_that_says_too_little_is_no_answer(fields: dict[str, Any], code: ExitCode) -> None:
    found = upgrade(OLD, run("1.1", *OLD.results, **fields))
    assert found.exit_code == code
    assert "Not known" in found.answer


def test_what_the_adapter_cannot_call_is_neither_better_nor_worse() -> None:
    reason = "TypeError: connect() got an unexpected keyword argument 'proxy'"
    older = run("0.9", row("A-1", "fail", reason=reason), row("A-2", "fail"), row("B-1", "pass"))
    newer = run("1.0", row("A-1", "pass"), row("A-2", "pass"), row("B-1", "pass"))
    found = upgrade(older, newer)
    assert [each.id for each in found.findings] == ["A-2"]
    assert (found.better, found.unjudged, found.exit_code) == (1, 1, ExitCode.INCONCLUSIVE)
    assert "1 row not judged: the adapter calls what one of the versions does not have" in found.answer
    assert upgrade(older, newer, ["B-1"]).exit_code == ExitCode.OK, "nothing that is used is affected"


def test_each_version_is_compared_with_the_one_before() -> None:
    runs = [OLD, run("1.1", row("A-1", "fail"), *OLD.results[1:]), run("1.2", *OLD.results)]
    assert [(each.older, each.newer, each.exit_code) for each in upgrades(runs)] == [
        ("1.0", "1.1", 4),
        ("1.1", "1.2", 0),
    ]


def judged(
    folder: Path | None, capsys: pytest.CaptureFixture[str], *, as_json: bool = False
) -> tuple[int, str]:
    """The exit code and what is printed of two versions, of which the newer one is worse in A-1."""
    runs = {
        "lib==1.0": OLD,
        "lib==1.1": run("1.1", row("A-1", "fail", reason="<it> hangs"), *OLD.results[1:]),
    }
    folders = []

    def judge(name: str, place: Path | None) -> Results:
        folders.append(place)
        return runs[name]

    console = Console(stderr=as_json, width=200, color_system=None)
    code = judge_versions(list(runs), judge, folder, console, as_json=as_json)
    assert folders == ([None, None] if folder is None else [folder / "lib-1.0", folder / "lib-1.1"])
    return code, capsys.readouterr().out


def test_the_answer_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = judged(None, capsys)
    assert code == ExitCode.REGRESSION
    assert "regressed  A-1/rabbitmq-stream  MUST   pass -> fail; [c]; <it> hangs" in printed
    assert "from 1.0 to 1.1? No: 1 row worse" in printed


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(judged(None, capsys, as_json=True)[1])
    assert [each["client_version"] for each in found["results"]] == ["1.0", "1.1"]
    assert [each["worse"] for each in found["upgrades"]] == [1]


def with_one_that_cannot_be_imported(
    versions: Sequence[str], folder: Path | None, *, as_json: bool = False
) -> int:
    """The exit code of several versions, of which that named 2.0 has an adapter that does not start."""

    def judge(name: str, place: Path | None) -> Results:
        version = name.partition("==")[2]
        if version == "2.0":
            raise AdapterFailed("No module named 'lib.<x>'")
        return run(version, *OLD.results)

    console = Console(stderr=as_json, width=200, color_system=None)
    return judge_versions([f"lib=={each}" for each in versions], judge, folder, console, as_json=as_json)


def test_a_version_that_cannot_be_imported_ends_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    code = with_one_that_cannot_be_imported(["1.0", "2.0", "2.1"], None, as_json=True)
    assert code == ExitCode.INCONCLUSIVE
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    first, broken, last = found["results"]
    assert [len(each["results"]) for each in (first, broken, last)] == [4, 0, 4]
    assert (broken["client"], broken["client_version"]) == ("lib", "2.0")
    assert (broken["complete"], broken["exit_code"]) == (False, ExitCode.INCONCLUSIVE)
    assert broken["reasons"] == ["it could not be judged: No module named 'lib.<x>'"]
    assert "lib==2.0 could not be judged: No module named 'lib.<x>'" in printed.err
    # those that were judged are compared with each other
    assert [(each["older"], each["newer"]) for each in found["upgrades"]] == [("1.0", "2.1")]


def test_something_worse_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    def judge(name: str, place: Path | None) -> Results:
        if name.endswith("2.0"):
            raise AdapterFailed("no")
        return run(name, *OLD.results, exit_code=3 if name.endswith("3.0") else 0)

    names = ["lib==1.0", "lib==2.0", "lib==3.0"]
    assert judge_versions(names, judge, None, Console(quiet=True), as_json=False) == ExitCode.HARNESS


def test_the_report_says_which_version_was_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2", reason="missing: jinja2 (pip install jinja2)")
    assert with_one_that_cannot_be_imported(["1.0", "2.0"], tmp_path) == ExitCode.INCONCLUSIVE
    kept = json.loads((tmp_path / "lib-2.0" / "results.json").read_text())
    assert (kept["results"], kept["complete"]) == ([], False)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "No module named &#39;lib.&lt;x&gt;&#39;" in page


def test_the_report_has_both_versions_and_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2", reason="missing: jinja2 (pip install jinja2)")
    judged(tmp_path, capsys)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "May I upgrade lib from 1.0 to 1.1? No: 1 row worse, no rows better" in page
    assert "&lt;it&gt; hangs" in page and "<it> hangs" not in page
    assert '<span class="version">1.0</span>' in page and '<span class="version">1.1</span>' in page
    assert json.loads((tmp_path / "upgrades.json").read_text())[0]["older"] == "1.0"


@pytest.mark.parametrize(
    ("uses", "worse", "code"),
    [
        ((), 2, ExitCode.REGRESSION),
        (("RMQS-3.01",), 1, ExitCode.REGRESSION),
        (("rmqs-3",), 1, ExitCode.REGRESSION),
        (("RMQS",), 2, ExitCode.REGRESSION),
        (("RMQS-3.02", "NET", "RMQS-30"), 0, ExitCode.OK),
    ],
)
def test_what_is_not_relied_on_stops_nobody(uses: Sequence[str], worse: int, code: ExitCode) -> None:
    older = run("1.0", row("RMQS-3.01", "pass"), row("RMQS-4.01", "pass"), row("RMQS-3.02", "fail"))
    newer = run("1.1", row("RMQS-3.01", "fail"), row("RMQS-4.01", "fail"), row("RMQS-3.02", "fail"))
    found = upgrade(older, newer, uses)
    assert (found.worse, found.exit_code, len(found.findings)) == (worse, code, 2)
    assert ("that you use" in found.answer) == bool(uses)


@pytest.mark.parametrize(
    ("client", "uses", "said"),
    [
        ("rstream", "RMQS-3", "several versions"),
        ("rstream,rstream==1.0", "RMQS-99", "no row, section or rule"),
    ],
)
def test_what_is_relied_on_has_to_be_something(
    client: str, uses: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["conform", "--client", client, "--uses", uses])
    assert left.value.code == ExitCode.USAGE
    assert said in " ".join(capfd.readouterr().err.split())
