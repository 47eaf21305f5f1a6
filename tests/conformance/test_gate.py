"""What the gate lets through, and what it says about every row."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from conformance.cli.gate import SHOWN, gate_command, show, summary_of, workflow_commands
from conformance.gate import Change, Decision, decide
from conformance.known.defects import Defect, KnownDefects, KnownRow
from conformance.printing import SafeConsole
from conformance.results import Results, RowResult, RuleResult, Verdict, dump
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError

PASS, FAIL, LOOSE = Verdict.PASS, Verdict.FAIL, Verdict.NON_STRICT
UNSUPPORTED, UNSURE, BROKEN = Verdict.UNSUPPORTED, Verdict.INCONCLUSIVE, Verdict.HARNESS_ERROR


def row(verdict: Verdict, level: Any = "MUST", number: int = 1, **more: Any) -> RowResult:
    criterion = "confirm-comes" if verdict is FAIL else ""
    base = {"criterion": criterion, "reason": "no confirm came" if criterion else "", "title": "Publish"}
    return RowResult(f"RMQS-3.{number:02}", "rabbitmq-stream", "", level, verdict, **{**base, **more})


def run(*rows: RowResult, version: str = "1.0", complete: bool = True) -> Results:
    stamp = "2026-01-01T00:00:00Z"
    return Results("mylib", version, "0.1.0", 0, stamp, 1.0, tuple(rows), complete=complete)


def changes(decision: Decision) -> list[tuple[str, Change]]:
    return [(found.id, found.change) for found in decision.findings]


DEFECT = 'protocol = "{}"\n[[defect]]\nid = "x"\ncause = "x"\nrows = ["{}"]\n'


def known(criterion: str = "confirm-comes", **more: Any) -> KnownDefects:
    defect = Defect("forgets", "it forgets")
    criteria = (criterion,)
    entry = KnownRow(defect=defect, id="RMQS-3.01", protocol="rabbitmq-stream", criteria=criteria, **more)
    return KnownDefects(rows=(entry,))


@pytest.mark.parametrize(
    ("before", "now", "change", "code"),
    [
        (row(PASS), row(PASS), None, ExitCode.OK),
        (row(PASS), row(FAIL), Change.FAILED, ExitCode.FAILED),
        (row(FAIL), row(FAIL), Change.FAILED, ExitCode.FAILED),
        (None, row(FAIL), Change.FAILED, ExitCode.FAILED),
        (row(PASS, "SHOULD"), row(FAIL, "SHOULD"), Change.REGRESSED, ExitCode.REGRESSION),
        (row(LOOSE, "SHOULD"), row(FAIL, "SHOULD"), Change.REGRESSED, ExitCode.REGRESSION),
        (row(PASS, "SHOULD"), row(FAIL, "SHOULD", revision=2), Change.SCENARIO_CHANGED, ExitCode.OK),
        (row(FAIL, "SHOULD"), row(FAIL, "SHOULD"), Change.FAILS, ExitCode.OK),
        (row(FAIL, "SHOULD"), row(FAIL, "SHOULD", criterion="x"), Change.OTHER_FAILURE, ExitCode.OK),
        (row(PASS, "SHOULD"), None, Change.VANISHED, ExitCode.REGRESSION),
        (row(PASS, "SHOULD"), row(UNSUPPORTED, "SHOULD"), Change.VANISHED, ExitCode.REGRESSION),
        (row(PASS, "SHOULD"), row(UNSURE, "SHOULD"), Change.UNJUDGED, ExitCode.OK),
        (row(UNSUPPORTED, "SHOULD"), None, None, ExitCode.OK),
        (None, row(PASS, "SHOULD"), Change.NEW, ExitCode.OK),
        (row(FAIL), row(PASS), Change.FIXED, ExitCode.OK),
        (row(PASS), row(LOOSE), Change.TOLERATED, ExitCode.OK),
        (row(PASS, "SHOULD"), row(BROKEN, "SHOULD"), Change.UNJUDGED, ExitCode.HARNESS),
    ],
)
def test_one_row(
    before: RowResult | None, now: RowResult | None, change: Change | None, code: ExitCode
) -> None:
    other = row(PASS, number=9)
    then = run(other, *([before] if before else []))
    decision = decide([run(other, *([now] if now else []))], baseline=then)
    assert [found.change for found in decision.findings] == ([change] if change else [])
    assert decision.exit_code == code
    assert bool(decision.reasons) is (code is not ExitCode.OK)


@pytest.mark.parametrize(
    ("before", "now", "word", "code"),
    [
        (row(PASS), row(FAIL), "failed", ExitCode.FAILED),
        (row(PASS, "SHOULD"), row(FAIL, "SHOULD"), "regressed", ExitCode.REGRESSION),
        (row(PASS, "SHOULD"), None, "vanished", ExitCode.REGRESSION),
        (None, row(PASS, "SHOULD"), "new", ExitCode.OK),
        (row(FAIL), row(PASS), "fixed", ExitCode.OK),
        (row(PASS, "SHOULD"), row(FAIL, "SHOULD", revision=2), "scenario changed", ExitCode.OK),
        (row(FAIL, "SHOULD"), row(FAIL, "SHOULD", criterion="x"), "fails otherwise", ExitCode.OK),
    ],
)
def test_the_command_names_each_row(
    tmp_path: Path, before: RowResult | None, now: RowResult | None, word: str, code: ExitCode
) -> None:
    other = row(PASS, number=9)
    then = write(tmp_path, "then", run(other, *([before] if before else [])))
    after = write(tmp_path, "now", run(other, *([now] if now else [])))
    done = gate(after, "--baseline", then)
    assert done.return_value == code
    (line,) = [line for line in done.output.splitlines() if "RMQS-3.01/rabbitmq-stream" in line]
    assert line.startswith(f"{word} ")
    (found,) = json.loads(gate(after, "--baseline", then, "--json").output)["findings"]
    assert (found["change"], found["id"], found["protocol"]) == (word, "RMQS-3.01", "rabbitmq-stream")


@pytest.mark.parametrize("field", ["id", "protocol", "variant"])
def test_a_row_is_matched_by_id_protocol_and_variant(field: str) -> None:
    mine = row(PASS, "SHOULD")
    other = msgspec.structs.replace(mine, **{field: "other"})
    decision = decide([run(other)], baseline=run(mine), required=0)
    assert [found.change for found in decision.findings] == [Change.VANISHED, Change.NEW]
    assert [getattr(found, field) for found in decision.findings] == [getattr(mine, field), "other"]


def test_a_known_failure_with_an_unknown_id_is_refused(tmp_path: Path) -> None:
    mine, file = write(tmp_path, "mine", run(row(PASS))), tmp_path / "known.toml"
    for (protocol, id), sentence in {
        ("rabbitmq-stream", "RMQS-3.999"): "there is no scenario RMQS-3.999/rabbitmq-stream",
        ("pzq", "RMQS-3.01"): "there is no scenario RMQS-3.01/pzq",
    }.items():
        file.write_text(DEFECT.format(protocol, id))
        refused = gate(mine, "--expect", str(file))
        assert isinstance(refused.exception, UsageError) and sentence in str(refused.exception)


def test_a_known_failure_of_a_criterion_that_nobody_declares_is_a_warning(tmp_path: Path) -> None:
    mine, file = write(tmp_path, "mine", run(row(PASS))), tmp_path / "known.toml"
    file.write_text(DEFECT.format("rabbitmq-stream", "RMQS-3.01 no-such"))
    done = gate(mine, "--expect", str(file))
    assert done.exception is None and done.exit_code == 0
    assert "known.toml: RMQS-3.01 has no criterion 'no-such'" in done.stderr


def test_a_failure_that_is_known_to_come_sometimes(tmp_path: Path) -> None:
    runs = [run(row(PASS)), run(row(FAIL)), run(row(FAIL))]
    (found,) = decide(runs, known=known(sometimes=True)).findings
    assert (found.change, found.failed, found.runs) == (Change.KNOWN, 2, 3)
    paths = [write(tmp_path, str(number), results) for number, results in enumerate(runs)]
    done = gate(*paths)
    assert done.return_value == ExitCode.FAILED and "fails in 2 of 3 runs" in done.output


def test_a_known_failure_is_one_by_its_criterion() -> None:
    failing = run(row(FAIL))
    (found,) = decide([failing], known=known()).findings
    assert (found.change, found.cause) == (Change.KNOWN, "it forgets")
    assert decide([failing], known=known()).exit_code == ExitCode.OK
    assert decide([failing], known=known("other-criterion")).exit_code == ExitCode.FAILED


def test_what_the_runs_own_file_excused_counts_again() -> None:
    excused = run(row(FAIL, tags=("expected", "flaky"), cause="it forgets"))
    assert decide([excused]).exit_code == ExitCode.FAILED


def test_a_known_failure_that_passes_is_reported() -> None:
    passing = run(row(PASS))
    assert changes(decide([passing], known=known())) == [("RMQS-3.01", Change.UNEXPECTED_PASS)]
    assert decide([passing], known=known()).exit_code == ExitCode.OK
    assert decide([passing], known=known(), strict=True).exit_code == ExitCode.REGRESSION
    assert not decide([passing], known=known(sometimes=True)).findings


def test_strict_takes_should_for_must() -> None:
    failing = run(row(PASS), row(FAIL, "SHOULD", 2))
    assert decide([failing]).exit_code == ExitCode.OK
    assert decide([failing], strict=True).exit_code == ExitCode.FAILED


def test_several_runs_tell_how_often_a_row_fails() -> None:
    runs = [run(row(PASS, "SHOULD")), run(row(FAIL, "SHOULD")), run(row(PASS, "SHOULD"))]
    (found,) = decide(runs).findings
    assert (found.change, found.failed, found.runs) == (Change.INTERMITTENT, 1, 3)
    (worse,) = decide([run(row(PASS)), run(row(FAIL))]).findings
    assert (worse.change, worse.failed, worse.runs) == (Change.FAILED, 1, 2)


def test_too_little_executed_and_cut_short() -> None:
    rows = [row(PASS), row(UNSUPPORTED, number=2)]
    decision = decide([run(*rows)])
    assert decision.exit_code == ExitCode.INCONCLUSIVE
    assert decision.reasons == ("50% of the MUST scenarios were executed, 90% are required",)
    assert decide([run(*rows)], required=0.5).exit_code == ExitCode.OK
    assert decide([run(row(PASS), complete=False)]).exit_code == ExitCode.INCONCLUSIVE


def test_the_worst_comes_first_and_decides() -> None:
    before = run(row(PASS, "SHOULD"), row(PASS, "MUST", 2), row(FAIL, "SHOULD", 3))
    after = run(row(FAIL, "SHOULD"), row(FAIL, "MUST", 2), row(PASS, "SHOULD", 3))
    decision = decide([after], baseline=before)
    assert [found.change for found in decision.findings] == [Change.FAILED, Change.REGRESSED, Change.FIXED]
    assert decision.exit_code == ExitCode.FAILED and len(decision.reasons) == 2


# the command


def write(folder: Path, name: str, results: Results) -> str:
    (folder / name).mkdir()
    (folder / name / "results.json").write_bytes(dump(results))
    return str(folder / name)


def gate(*arguments: str, env: dict[str, str] | None = None) -> Any:
    clean = {"GITHUB_ACTIONS": "", "GITHUB_STEP_SUMMARY": "", **(env or {})}
    return CliRunner().invoke(gate_command, arguments, env=clean, standalone_mode=False)


def test_an_upgrade_in_words_and_as_json(tmp_path: Path) -> None:
    old = write(tmp_path, "old", run(row(PASS), row(PASS, "SHOULD", 2), version="1.0"))
    new = write(tmp_path, "new", run(row(PASS), row(FAIL, "SHOULD", 2), version="1.1"))
    done = gate(new, "--baseline", old)
    assert done.return_value == ExitCode.REGRESSION
    assert "mylib 1.1 against 1.0" in done.output
    assert "regressed" in done.output and "[confirm-comes]" in done.output
    assert "exit code 4: 1 row worse than in the baseline (regressed or vanished)" in done.output
    document = json.loads(gate(new, "--baseline", f"{old}/results.json", "--json").output)
    assert msgspec.convert(document, Decision, strict=False).exit_code == ExitCode.REGRESSION
    assert document["findings"][0]["before"] == "pass"


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    mine = write(tmp_path, "mine", run(row(PASS)))
    other = write(tmp_path, "other", msgspec.structs.replace(run(row(PASS)), client="theirs"))
    newer = write(tmp_path, "newer", run(row(PASS), version="2.0"))
    file = tmp_path / "known.toml"
    file.write_text('client = "mylib"\nclient_version = "2.*"\n')
    for arguments, sentence in {
        (mine, "--baseline", other): "expected a baseline of 'mylib', got one of 'theirs'",
        (mine, newer): "expected several runs of one client in one version, got mylib 1.0 and mylib 2.0",
        (mine, "--expect", str(file)): "is about mylib 2.*, and this is 1.0",
    }.items():
        refused = gate(*arguments)
        assert isinstance(refused.exception, UsageError) and sentence in str(refused.exception)


def test_on_github_rows_are_marked_and_the_step_has_a_summary(tmp_path: Path) -> None:
    hostile = row(FAIL, reason="a|b <script>\n::error::gotcha", title="100%: x")
    path, summary = write(tmp_path, "run", run(hostile)), tmp_path / "summary.md"
    done = gate(path, env={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)})
    marks = [line for line in done.output.splitlines() if line.startswith("::")]
    assert len(marks) == 1
    assert marks[0].startswith("::error title=failed%3A RMQS-3.01/rabbitmq-stream::100%25: x: ")
    text = summary.read_text()
    assert "| failed | `RMQS-3.01/rabbitmq-stream` | MUST | `[confirm-comes]; a\\x7cb <script>\\n::" in text


def test_nothing_to_say_is_said_shortly() -> None:
    decision = decide([run(row(PASS))])
    assert workflow_commands(decision) == []
    assert summary_of(decision) == "### `mylib 1.0`\n\n`exit code 0: no reason against it`\n\n"


def rule(level: Any = "MUST", name: str = "beats", **more: Any) -> RuleResult:
    base = {"about": "A client is never silent for longer.", "reason": "silent for 9 s"}
    rows = ("RMQS-3.01", "RMQS-3.02")
    return RuleResult(name, "rabbitmq-stream", "", level, more.pop("verdict", FAIL), rows, **{**base, **more})


def with_rules(*rules: RuleResult) -> Results:
    return msgspec.structs.replace(run(row(PASS, number=1), row(PASS, number=2)), rules=rules)


@pytest.mark.parametrize(
    ("before", "now", "change", "code"),
    [
        (None, rule(), Change.FAILED, ExitCode.FAILED),
        (None, rule("SHOULD"), Change.FAILS, ExitCode.OK),
        (None, rule(verdict=UNSURE), Change.UNJUDGED, ExitCode.OK),
        ([], rule("SHOULD"), Change.REGRESSED, ExitCode.REGRESSION),
        ([rule("SHOULD")], rule("SHOULD"), Change.FAILS, ExitCode.OK),
        ([rule()], None, Change.FIXED, ExitCode.OK),
        ([], None, None, ExitCode.OK),
    ],
)
def test_a_rule_is_a_row(
    before: list[RuleResult] | None, now: RuleResult | None, change: Change | None, code: ExitCode
) -> None:
    baseline = None if before is None else with_rules(*before)
    decision = decide([with_rules(*([now] if now else []))], baseline=baseline)
    assert [(found.id, found.change) for found in decision.findings] == (
        [("beats", change)] if change else []
    )
    assert decision.exit_code == code
    assert decision.executed == 1.0  # rules are nothing that could be left out


def test_the_file_of_the_gate_knows_rules_by_their_rows() -> None:
    defect = Defect("no-timer", "no timer")
    entry = KnownRow(defect=defect, rule="beats", protocol="rabbitmq-stream", rows=("RMQS-3.01",))
    found = decide([with_rules(rule(tags=("expected",)))], known=KnownDefects(rows=(entry,)))
    assert [(one.change, one.reason) for one in found.findings] == [(Change.FAILED, "1 row: silent for 9 s")]
    both = KnownDefects(rows=(entry, msgspec.structs.replace(entry, rows=("RMQS-3.02",))))
    assert [one.change for one in decide([with_rules(rule())], known=both).findings] == [Change.KNOWN]


def test_a_rule_that_only_one_of_several_runs_shows() -> None:
    decision = decide([with_rules(rule("SHOULD")), with_rules()])
    assert [(one.change, one.failed, one.runs) for one in decision.findings] == [(Change.INTERMITTENT, 1, 2)]


def test_of_very_many_rows_the_worst_are_shown_and_the_others_counted() -> None:
    rows = [row(FAIL, number=number, reason="x" * 900) for number in range(5000)]
    decision = decide([run(*rows)])
    assert len(decision.findings) == 5000
    assert len(workflow_commands(decision)) == SHOWN
    summary = summary_of(decision)
    assert summary.count("\n| failed") == SHOWN and len(summary) < 1 << 20
    console = SafeConsole(file=io.StringIO(), width=1200)
    show(console, decision)
    assert console.file.getvalue().count("failed  ") == SHOWN  # type: ignore[attr-defined]
    assert "4000 more rows are not shown here" in summary
    assert "4000 more rows are not shown here" in console.file.getvalue()  # type: ignore[attr-defined]
