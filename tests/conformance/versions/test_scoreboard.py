"""The command, with verdicts that are made up: what it judges, keeps and says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.clients.adapters.registry import find
from conformance.results import Results, RowResult, Verdict
from conformance.suite.scenario import Scenario
from conformance.versions import keep
from conformance.versions.sources import Releases
from fakebrokers.cli import main
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError

VERSIONS = ["1.0.0", "1.0.1", "1.1.0", "1.1.1"]
Asked = list[tuple[str, int]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The versions that are judged, each with the number of rows; version 1.0.1 cannot be had."""
    found: Asked = []

    def command(source: Releases, version: str) -> list[str]:
        if version == "1.0.1":
            raise UsageError("pip cannot install it")
        return [version]

    def run_rows(
        name: str, protocol: str, command: Sequence[str], rows: Sequence[Scenario], parallel: int | None
    ) -> Results:
        found.append((command[0], len(rows)))
        verdict = Verdict.FAIL if command[0] == "1.0.0" else Verdict.PASS
        results = [
            RowResult(row.id, protocol, row.variant, row.requirement.level, verdict, revision=row.revision)
            for row in rows
        ]
        return Results(name, command[0], "1", 0, "", 1.0, tuple(results))

    monkeypatch.setattr(Releases, "versions", lambda source: VERSIONS)
    monkeypatch.setattr(Releases, "command", command)
    monkeypatch.setattr(keep, "run_rows", run_rows)
    return found


def scoreboard(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["scoreboard", *words])
    return int(left.value.code or 0)


def test_the_last_versions_are_judged_once(asked: Asked, tmp_path: Path) -> None:
    words = ("--out", str(tmp_path), "--clients", "rstream", "--last", "3", "--set", "smoke")
    assert scoreboard(*words) == ExitCode.OK
    assert asked == [("1.1.0", 15), ("1.1.1", 15)]
    assert "not judged" in (tmp_path / "rstream-rabbitmq-stream.html").read_text()
    assert scoreboard(*words) == ExitCode.OK
    assert len(asked) == 2, "nothing has changed"
    assert scoreboard(*words[:-4], "--last", "4", "--set", "smoke") == ExitCode.OK
    assert asked[2:] == [("1.0.0", 15)]
    assert '<b class="better">+15</b>' in (tmp_path / "index.html").read_text()


def test_another_set_judges_the_rows_that_are_missing(asked: Asked, tmp_path: Path) -> None:
    words = ("--out", str(tmp_path), "--clients", "rstream", "--last", "1")
    scoreboard(*words, "--set", "smoke")
    scoreboard(*words, "--set", "gate")
    (_, few), (_, more) = asked
    assert few == 15
    assert more > 15
    kept = (tmp_path / "judged" / "rstream-rabbitmq-stream" / "1.1.1.json").read_text()
    assert kept.count('"id"') <= few + more


def test_nobody_could_be_judged(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Releases, "versions", lambda source: ["1.0.1"])
    assert scoreboard("--out", str(tmp_path), "--clients", "rstream") == ExitCode.INCONCLUSIVE
    assert "rstream 1.0.1: not judged: pip cannot install it" in capfd.readouterr().err


def test_ctrl_c_leaves_pages_of_the_clients_before(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = Releases.command

    def stopped(source: Releases, version: str) -> list[str]:
        if source.name == "rbfly":
            raise KeyboardInterrupt
        return calm(source, version)

    monkeypatch.setattr(Releases, "command", stopped)
    words = ("--out", str(tmp_path), "--clients", "rstream,rbfly", "--last", "1", "--set", "smoke")
    assert scoreboard(*words) == 130
    index = (tmp_path / "index.html").read_text()
    assert ("rstream-rabbitmq-stream.html" in index, "rbfly" in index) == (True, False)


def test_names_have_no_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.clients.adapters.registry.fetched", lambda *_: tmp_path)
    assert find("rstream==1.0").packages
    assert scoreboard("--out", str(tmp_path / "out"), "--clients", "rstream==1.0") == ExitCode.USAGE
