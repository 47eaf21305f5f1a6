"""The command, with verdicts that are made up: what it judges, keeps and says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.clients.adapters.registry import find
from conformance.results import Results, RowResult, Verdict
from conformance.versions import judging
from conformance.versions.judging import LOOKS, Ask, Judge, OnDone
from conformance.versions.sources import Releases
from fakebrokers.cli import main
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError

VERSIONS = ["1.0.0", "1.0.1", "1.1.0", "1.1.1"]
PASS = Verdict.PASS
Asked = list[tuple[str, int]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The versions that are judged, each with the number of rows; version 1.0.1 cannot be had."""
    found: Asked = []

    def command(source: Releases, version: str) -> list[str]:
        if version == "1.0.1":
            raise UsageError("pip cannot install it")
        return [version]

    def side_by_side(client: str, *_: object) -> Judge:
        def judge(asks: Sequence[Ask], on_done: OnDone) -> None:
            for ask in asks:
                found.append((ask.version, len(ask.rows)))
                on_done(ask.version, results(client, ask, Verdict.FAIL if ask.version == "1.0.0" else PASS))

        return judge

    monkeypatch.setattr(Releases, "versions", lambda source: VERSIONS)
    monkeypatch.setattr(Releases, "command", command)
    monkeypatch.setattr(judging, "side_by_side", side_by_side)
    return found


def results(client: str, ask: Ask, verdict: Verdict) -> Results:
    rows = [
        RowResult(row.id, row.protocol, row.variant, row.requirement.level, verdict, revision=row.revision)
        for row in ask.rows
    ]
    return Results(client, ask.version, "1", 0, "", 1.0, tuple(rows))


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
    again = [("1.0.0", 15), ("1.1.0", 15)]  # what seems to be mended is looked at again, before and after
    assert asked[2:] == [("1.0.0", 15), *again * (LOOKS - 1)]
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


def test_ctrl_c_leaves_pages_of_what_was_judged_until_then(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = Releases.command

    def stopped(source: Releases, version: str) -> list[str]:
        if source.name == "rbfly":
            raise KeyboardInterrupt
        return calm(source, version)

    words = ("--last", "1", "--set", "smoke", "--out", str(tmp_path), "--clients")
    assert scoreboard(*words, "narconi-python") == ExitCode.OK
    monkeypatch.setattr(Releases, "command", stopped)
    assert scoreboard(*words, "rstream,rbfly,narconi-python") == 130
    index = (tmp_path / "index.html").read_text()
    assert "rstream-rabbitmq-stream.html" in index and "rbfly" not in index
    assert "narconi-python-narconi.html" in index, "it was judged by an earlier command"


def test_names_have_no_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.clients.adapters.registry.fetched", lambda *_: tmp_path)
    assert find("rstream==1.0").packages
    assert scoreboard("--out", str(tmp_path / "out"), "--clients", "rstream==1.0") == ExitCode.USAGE
