"""``analyze --rules``: runs that were kept, judged by the rules for all runs."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")

from click.testing import CliRunner

from conformance.cli.analyze import analyze, analyze_journals
from conformance.pipeline.columns import rules
from conformance.search.random.client import ChaosClient
from conformance.search.random.draw import Setting, draw
from conformance.search.random.history import KeptJournals
from conformance.search.random.verdict import verdict_on
from fakebrokers.commands import ExitCode
from fakebrokers.journal import RunJournal

PROTOCOL, MUTANT, RULE = "rabbitmq-stream", "credit-by-two", "credit-overrun"
SEEDS = ("54", "55", "56")  #: of which some show what the mutant does wrong
REQUIRED = "FAKEBROKERS_REQUIRE_SPARK"


def played(folder: Path, mutant: str, *, traces: bool = True) -> list[list[str]]:
    """Runs on disk, and what the rules found on their day."""
    subject = ChaosClient(PROTOCOL, "reference", mutant)
    setting = Setting(PROTOCOL)
    kept = KeptJournals(folder, traces)
    return [verdict_on(subject.run(draw(setting, seed), "", kept)).names for seed in SEEDS]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Runs of a broken client, and how many of them the rule blamed."""
    folder = tmp_path_factory.mktemp("journal")
    found = played(folder, MUTANT)
    return folder, sum(RULE in names for names in found)


def test_it_finds_what_was_found_on_the_day(journal: tuple[Path, int], tmp_path: Path) -> None:
    folder, blamed = journal
    summary = analyze_journals([folder], tmp_path, engine="local", rules=True)
    assert blamed
    assert summary["anomalies"] == {RULE: blamed}
    assert summary["traces"] == {"judged": len(SEEDS), "unread": {}}
    without = analyze_journals([folder], tmp_path, engine="local")
    assert without["anomalies"] == {}
    assert "traces" not in without


@pytest.mark.full
def test_spark_finds_the_same(journal: tuple[Path, int], tmp_path: Path) -> None:
    if importlib.util.find_spec("pyspark") is None and not os.environ.get(REQUIRED):
        pytest.skip("missing: pyspark (pip install pyspark)")
    folder, blamed = journal
    summary = analyze_journals([folder], tmp_path, rules=True)
    assert (summary["anomalies"], summary["traces"]["judged"]) == ({RULE: blamed}, len(SEEDS))


def test_a_finding_says_what_happened_and_where(journal: tuple[Path, int], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    analyze_journals([journal[0]], tmp_path, engine="local", rules=True)
    row = pq.read_table(tmp_path / "anomalies.parquet").to_pylist()[0]
    assert (row["name"], row["allowed"], row["client"]) == (RULE, False, "reference")
    assert "credit for 2 more deliveries" in row["detail"]
    trace = pq.read_table(next(journal[0].glob("trace-*.parquet")), filters=[("run", "=", row["run"])])
    kinds = {each["what"] for each in trace.to_pylist() if each["seq"] in row["seqs"]}
    assert kinds <= {"in", "out", "op", "answer", "event"}
    assert row["seqs"]


def test_other_rules_judge_again_and_the_same_do_not(
    journal: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def judge(case: Any, allows: Any, real: Any = rules.judge_again) -> Any:
        asked.append(case.spec.base)
        return real(case, allows)

    monkeypatch.setattr(rules, "judge_again", judge)
    for _ in range(2):
        analyze_journals([journal[0]], tmp_path, engine="local", rules=True)
    assert len(asked) == len(SEEDS)
    monkeypatch.setattr(rules, "edition", lambda: "another")
    analyze_journals([journal[0]], tmp_path, engine="local", rules=True)
    assert len(asked) == 2 * len(SEEDS)


def test_runs_without_a_trace_and_traces_without_an_end_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    assert played(folder, "")
    played(folder, "", traces=False)
    cut = RunJournal(folder, "cut", traces=True, protocol=PROTOCOL, client="reference")
    cut.trace([(1.0, "accept", "c1", "")])
    cut.close()
    done = CliRunner().invoke(
        analyze, [str(folder), "--out", str(tmp_path / "out"), "--engine", "local", "--rules"]
    )
    assert f"judged {len(SEEDS)} traces; {len(SEEDS)} runs have none" in done.output
    assert "cut~" in done.output
    assert "the trace has no end" in done.output


def test_the_traces_of_a_scenario_are_judged_too(tmp_path: Path) -> None:
    from conformance.cli.suite import conform_command

    report = tmp_path / "report"
    asked = ["--client", "reference-pzq", "PZQ-2.14", "PZQ-1.10", "--report", str(report), "--traces"]
    done = CliRunner().invoke(conform_command, asked, standalone_mode=False)
    assert done.return_value == 0, done.output
    summary = analyze_journals([report], tmp_path / "out", engine="local", rules=True)
    assert (summary["runs"], summary["traces"]) == (2, {"judged": 2, "unread": {}})


@pytest.mark.parametrize("command", ["chaos", "conform"])
def test_traces_need_a_folder(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    from fakebrokers.cli import main

    with pytest.raises(SystemExit) as ended:
        main([command, "--client", "reference-pzq", "--traces"])
    assert ended.value.code == ExitCode.USAGE
    assert "--traces" in (said := capsys.readouterr().err) and "--report" in said
