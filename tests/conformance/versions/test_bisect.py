"""The command, on commits whose adapter is a reference client that has a defect from one commit on."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conformance.cli import bisection
from conformance.clients.mutants.registry import find_mutant
from conformance.clients.packages.cache import output_of
from conformance.clients.reference.registry import command
from conformance.results import Results, RowResult, RuleResult, Verdict
from conformance.run.specs import Spec
from conformance.search.systematic.replay import Replay
from conformance.versions import sources, subjects
from conformance.versions.search import Skipped, VersionOutcome
from conformance.versions.settle import Shown
from conformance.versions.sources import Checkout, Releases, Source, in_a_line
from conformance.versions.subjects import Once, of_row
from fakebrokers.cli import main
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError

TOP = Path(__file__).parents[3]
ROW = "RMQS-3.12"
GOOD = shlex.join(command("rabbitmq-stream"))


def mutant(name: str) -> str:
    """The command line of a reference client with a defect."""
    return shlex.join(find_mutant("rabbitmq-stream", name).command)


BAD = mutant("one-confirm-per-frame")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder; nothing is in it yet."""
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "somebody@localhost")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "client").mkdir()
    monkeypatch.chdir(tmp_path / "client")
    git("init", "-q", "-b", "main")
    return tmp_path / "client"


@pytest.fixture
def spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client is judged: the adapter of a version says its verdict, and one that fails cannot be driven."""

    def says(source: Source, version: str) -> str:
        try:
            return output_of(source.command(version), "no hello").strip()
        except UsageError:
            return ""

    shown: dict[str, Shown | Skipped] = {
        "pass": Shown(passes=1),
        "fail": Shown(1, 0, "it hangs"),
        "": Skipped("it does not start"),
    }

    def by_row(source: Source, *_: object) -> Once:
        return lambda version: shown[says(source, version)]

    monkeypatch.setattr(subjects, "by_row", by_row)
    monkeypatch.setattr(
        sources, "refused", lambda source, version, _: "" if says(source, version) else "no hello"
    )


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout.strip()


def commit(source: str) -> str:
    """A commit whose build is what starts the adapter; its short hash."""
    Path("adapter.src").write_text(f"#!/bin/sh\n{source}\n")
    git("add", ".")
    git("commit", "-q", "--allow-empty", "-m", source)
    return git("rev-parse", "--short", "HEAD")


def bisect(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    adapter = ["--adapter", "./adapter", "--protocol", "rabbitmq-stream"]
    with pytest.raises(SystemExit) as left:
        main(["bisect", *words, *adapter, "--build", "cp adapter.src adapter; chmod +x adapter", "--json"])
    out = capfd.readouterr().out
    return int(left.value.code or 0), json.loads(out) if out else None


@pytest.mark.usefixtures("spoken")
def test_the_commit_that_broke_it_is_named(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    says = ["echo pass", "echo pass", "exit 1", "echo pass", "echo fail", "echo fail"]
    hashes = [commit(each) for each in says]
    code, found = bisect(capfd, ROW, "--git", f"{hashes[0]}..HEAD")
    assert code == ExitCode.OK
    assert (found["id"], found["changed_in"], found["last_before"]) == (ROW, hashes[4], hashes[3])
    assert (found["before"], found["after"]) == ("pass", "fail")
    assert [each["version"] for each in found["judged"]][:2] == [hashes[0], hashes[5]]
    assert len(found["judged"]) <= 5
    assert {each["version"] for each in found["skipped"]} <= {hashes[2]}
    assert os.listdir(repository.parent / "temporary") == []
    assert git("worktree", "list").count("\n") == 0, "nothing is left of the checkouts"


@pytest.mark.usefixtures("spoken")
@pytest.mark.parametrize(
    ("says", "code", "judged", "possible"),
    [
        (["echo pass", "echo fail", "echo pass"], ExitCode.FAILED, 2, 0),  # both ends agree
        (["echo fail", "exit 1", "echo pass"], ExitCode.INCONCLUSIVE, 2, 1),
        (["exit 1", "exit 1"], ExitCode.INCONCLUSIVE, 0, 0),
        (["exit 1", "echo pass"], ExitCode.INCONCLUSIVE, 1, 0),
        (
            ["exit 1", "echo pass", "echo pass"],
            ExitCode.INCONCLUSIVE,
            2,
            0,
        ),  # not the ends that were asked for
    ],
)
def test_what_cannot_be_said(
    says: list[str],
    code: ExitCode,
    judged: int,
    possible: int,
    repository: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    hashes = [commit(each) for each in says]
    left, found = bisect(capfd, ROW, "--git", f"{hashes[0]}..{hashes[-1]}")
    assert (left, len(found["judged"])) == (code, judged)
    assert found["possible"] == hashes[1:-1][:possible]
    assert (found["changed_in"] is None) == (possible == 0)


@pytest.mark.full  # clients of other processes wait in real time
def test_a_row_of_the_suite_decides(repository: Path) -> None:
    """The one test that starts clients: on a machine that keeps them waiting a row may say nothing."""
    first, last = commit(f"exec {GOOD}"), commit(f"exec {BAD}")
    build = "cp adapter.src adapter; chmod +x adapter"
    with Checkout(f"{first}..{last}", build, "./adapter", None) as checkout:
        once = subjects.by_row(checkout, "rabbitmq-stream", ROW, "")
        assert once(first) == Shown(passes=1)
        assert isinstance(shown := once(last), Skipped) or shown.fails


@pytest.mark.full  # clients of other processes wait in real time
def test_by_a_replay_file(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first, last = commit(f"exec {GOOD}"), commit(f"exec {mutant('credit-never-returned')}")
    spec = Spec("rabbitmq-stream", "both")
    path = Replay(client="", spec=spec, invariants={"credit-leak": "it ran dry"}).write(repository)
    code, found = bisect(capfd, str(path), "--git", f"{first}..{last}", "--runs", "1")
    assert (code, found["changed_in"]) == (ExitCode.OK, last)
    assert found["judged"][1]["reason"].startswith("credit-leak: ")


def test_by_a_rule(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first, last = commit(f"exec {GOOD}"), commit(f"exec {mutant('credit-by-two')}")
    code, found = bisect(
        capfd, "--rule", "credit-overrun", "RMQS-4.01", "--git", f"{first}..{last}", "--runs", "1"
    )
    assert (code, found["id"], found["changed_in"]) == (ExitCode.OK, "credit-overrun", last)


@pytest.mark.parametrize(
    ("tries", "says"),
    [
        (["busy", "busy", "kept"], Shown(0, 1)),
        (["in doubt", "in doubt", "violated"], Shown(2, 0, "in doubt")),
        (["in doubt", "kept"], Shown(0, 1)),
        (["busy"] * 3, Skipped("none of the rows could be run")),
        (["in doubt"] * 3, Skipped("in doubt")),
    ],
)
def test_a_rule_is_looked_for_again_where_the_machine_was_too_busy(
    tries: list[str], says: Shown | Skipped, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(tries)

    def suite(*_: object) -> Results:
        word = next(left)
        executed = Verdict.INCONCLUSIVE if word == "busy" else Verdict.PASS
        row = RowResult("RMQS-4.01", "rabbitmq-stream", "", "MUST", executed)
        verdict = Verdict.FAIL if word == "violated" else Verdict.INCONCLUSIVE
        rule = RuleResult(
            "credit-overrun", "rabbitmq-stream", "", "MUST", verdict, ("RMQS-4.01",), "in doubt"
        )
        rules = (rule,) if word in ("violated", "in doubt") else ()
        return Results("a", "1.0.0", "1", 0, "", 1.0, (row,), rules=rules)

    monkeypatch.setattr(subjects, "_suite", suite)
    once = subjects.by_rule(Releases("rstream"), "rabbitmq-stream", "credit-overrun", ["RMQS-4.01"], None)
    assert once("1.0.0") == says


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the id of a row"),
        ([ROW, "RMQS-3.13", "--client", "rstream"], "expected one row"),
        ([ROW], "--client NAME"),
        ([ROW, "--client", "rstream", "--build", "make"], "go with --git"),
        ([ROW, "--client", "rstream", "--git", "a..b", "--good", "1"], "leave out"),
        ([ROW, "--git", "a..b"], "either --client NAME or --adapter CMD"),
        ([ROW, "--git", "a..b", "--client", "pzq-node"], "clients in Python"),
        ([ROW, "--git=--all..b", "--client", "rstream"], "expected GOOD..BAD"),
        (["--rule", "no-such", "--client", "rstream"], "there is no rule"),
        (["NET-2.01", "--client", "moleculer-0.14"], "--variant"),
        (["RMQS-3", "--client", "rstream"], "expected one row"),
        (["none.json", "--client", "rstream"], "no such file"),
        ([ROW, "--client", "narconi-go", "--protocol", "narconi"], "no scenario"),
    ],
)
def test_what_does_not_go_together(
    words: list[str], said: str, capfd: pytest.CaptureFixture[str], repository: Path
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["bisect", *words])
    assert left.value.code == ExitCode.USAGE
    assert said in " ".join(capfd.readouterr().err.split())


@pytest.mark.parametrize(
    ("verdict", "tags", "shown"),
    [
        (Verdict.PASS, (), Shown(0, 1)),
        (Verdict.NON_STRICT, ("flaky",), Shown(1, 2)),
        (Verdict.FAIL, (), Shown(2, 0, "late", "in-time")),
        (Verdict.FAIL, ("flaky",), Shown(2, 1, "late", "in-time")),
        (Verdict.FAIL, ("adapter",), Skipped("its adapter: late")),
        (Verdict.INCONCLUSIVE, (), Skipped("inconclusive: late", passing=True)),
        (Verdict.HARNESS_ERROR, (), Skipped("harness error: late")),
        (Verdict.UNSUPPORTED, (), Skipped("skipped: unsupported: late")),
    ],
)
def test_what_a_row_says(verdict: Verdict, tags: tuple[str, ...], shown: Shown | Skipped) -> None:
    row = RowResult("A-1", "p", "", "MUST", verdict, tags=tags, reason="late", criterion="in-time")
    assert of_row(row) == (shown)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (VersionOutcome("pass"), "pass"),
        (VersionOutcome("fail", detail="late"), "fail: late"),
        (VersionOutcome("fail", steady=False, detail="late", runs=3), "fails now and then, in 3 runs: late"),
        (VersionOutcome("fail", steady=False, runs=3), "fails now and then, in 3 runs"),
    ],
)
def test_what_is_said_of_a_version(outcome: VersionOutcome, said: str) -> None:
    assert bisection._word(outcome) == said


def test_a_range_without_commits(repository: Path) -> None:
    head = commit(f"exec {GOOD}")
    with (
        Checkout(f"{head}..{head}", "", "./adapter", None) as checkout,
        pytest.raises(UsageError, match="no commits"),
    ):
        checkout.versions()


def test_of_a_traceback_the_last_line_is_said() -> None:
    text = "no hello:\nTraceback (most recent call last):\nImportError: no 'x' (/a/b.py)\n\nNode.js v20\n"
    assert in_a_line(ValueError(text)) == "no hello: ImportError: no 'x'"
    text = "it cannot be compiled: /root/.cache/fetching-x/src/Adapter.java:[50,24] cannot access io/nats"
    assert in_a_line(ValueError(text)) == "it cannot be compiled: Adapter.java:[50,24] cannot access io/nats"
