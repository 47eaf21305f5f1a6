"""Whether a run may pass: its results against known failures and an earlier run, row by row.

A row is named by (id, protocol, variant), a failure by its criterion too. Only what was worked out in the
runs counts; nothing is run here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from conformance.known.defects import KnownDefects
from conformance.results import Results, RowResult, Verdict, load
from conformance.suite.expectations import apply, apply_rules
from conformance.suite.rule_results import as_row
from conformance.suite.scenario import Key
from conformance.suite.verdicts import (
    EXECUTED_SHARE,
    PRECEDENCE,
    SKIPPED,
    executed_share,
    was_executed,
)
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError

_GOOD = (Verdict.PASS, Verdict.NON_STRICT)


class Change(StrEnum):
    """What is to be said of a row; those that are no news are left out."""

    FAILED = "failed"  #: a MUST fails that nobody expected
    REGRESSED = "regressed"  #: it passed in the baseline
    OTHER_FAILURE = "fails otherwise"  #: by another criterion than in the baseline
    VANISHED = "vanished"  #: the baseline has a verdict, and now there is none
    SCENARIO_CHANGED = "scenario changed"  #: worse, but the scenario demands something else than it did
    UNEXPECTED_PASS = "unexpected pass"  #: noqa: S105 - known to fail, and passes
    INTERMITTENT = "intermittent"  #: fails in some of the runs
    UNJUDGED = "not judged"  #: inconclusive, or the harness failed
    TOLERATED = "less strict"  #: a pass in the baseline, tolerated now
    FAILS = "fails"  #: a SHOULD or a MAY; it failed before, or there is no baseline
    KNOWN = "known"  #: it fails as the expectation file says
    FIXED = "fixed"  #: it failed in the baseline
    NEW = "new"  #: the baseline does not have it


#: Which of them stop a client that was better before.
WORSE = frozenset({Change.REGRESSED, Change.VANISHED})


class GateRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row, and what is to be said of it.

    Attributes:
        change: What it is.
        before: The verdict in the baseline; empty if there is none.
        now: The verdict, the worst of all runs; empty if there is none.
        criterion: Id of the criterion that fails.
        reason: What happened, in the words of the run.
        cause: Of a known failure the root cause.
        failed: In how many runs it failed.
        runs: In how many it was judged.
    """

    id: str
    protocol: str
    variant: str
    level: str
    title: str
    change: Change
    before: str = ""
    now: str = ""
    criterion: str = ""
    reason: str = ""
    cause: str = ""
    failed: int = 0
    runs: int = 0

    @property
    def name(self) -> str:
        """The row in a word."""
        return "/".join(part for part in (self.id, self.protocol, self.variant) if part)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says.

    Attributes:
        runs: How many runs of the client were looked at.
        executed: Share of the MUST scenarios that were run.
        required: The share that has to be.
        complete: Whether no run was cut short.
        findings: By weight.
        reasons: Why the exit code is what it is, a sentence each; none for 0.
    """

    client: str
    client_version: str
    baseline_version: str
    runs: int
    executed: float
    required: float
    complete: bool
    findings: tuple[GateRow, ...]
    counts: dict[str, int]
    reasons: tuple[str, ...]
    exit_code: int


def results_file(path: Path) -> Path:
    """The results that are meant: a file, or the report folder that holds it."""
    return path / "results.json" if path.is_dir() else path


def load_runs(paths: Sequence[Path]) -> list[Results]:
    """The results of one client, run once or several times. `UsageError` if they are not of one client."""
    runs = [load(results_file(path)) for path in paths]
    who = {(run.client, run.client_version) for run in runs}
    if len(who) > 1:
        names = " and ".join(sorted(" ".join(each) for each in who))
        raise UsageError(f"expected several runs of one client in one version, got {names}")
    return runs


def load_baseline(path: Path, client: str) -> Results:
    """An earlier run of that client, in any version. `UsageError` if it is about another."""
    found = load(results_file(path))
    if found.client != client:
        raise UsageError(f"{path}: expected a baseline of {client!r}, got one of {found.client!r}")
    return found


def decide(
    runs: Sequence[Results],
    *,
    baseline: Results | None = None,
    known: KnownDefects | None = None,
    strict: bool = False,
    required: float = EXECUTED_SHARE,
) -> Decision:
    """Compare.

    Args:
        runs: Of one client in one version; at least one. A row that fails in one of them fails.
        baseline: An earlier run, perhaps of an earlier version.
        strict: SHOULD counts like MUST, and an unexpected pass like a regression.
        required: Share of the MUST scenarios that has to be executed.
    """
    known = known or KnownDefects()
    levels = ("MUST", "SHOULD") if strict else ("MUST",)
    judged = [apply(map(_unmarked, run.results), known) for run in runs]
    rules = [rule_rows(run, known, rows) for run, rows in zip(runs, judged, strict=True)]
    rows = _worst(judged)
    findings = rules_changed(rules, baseline, levels=levels) + _changed(judged, rows, baseline, levels)
    findings.sort(key=lambda found: list(Change).index(found.change))
    complete = all(run.complete for run in runs)
    executed = executed_share(rows.values())
    code, reasons = _verdict(rows, findings, complete, executed, required, strict)
    if new := sum(row.new for run in runs for row in run.found):
        code = code if code is ExitCode.HARNESS else ExitCode.FAILED
        reasons.append(f"sweep and chaos: {new} new finding{'s' * (new != 1)}")
    return Decision(
        client=runs[0].client,
        client_version=runs[0].client_version,
        baseline_version=baseline.client_version if baseline is not None else "",
        runs=len(runs),
        executed=round(executed, 4),
        required=required,
        complete=complete,
        findings=tuple(findings),
        counts=dict(Counter(found.change.value for found in findings)),
        reasons=tuple(reasons),
        exit_code=int(code),
    )


def _changed(
    judged: Sequence[Sequence[RowResult]],
    rows: Mapping[Key, RowResult],
    baseline: Results | None,
    levels: Sequence[str],
) -> list[GateRow]:
    """What has become of the rows since the baseline."""
    before = {row.key: row for row in baseline.results} if baseline is not None else {}
    failed = Counter(row.key for run in judged for row in run if row.verdict is Verdict.FAIL)
    ran = Counter(row.key for run in judged for row in run if was_executed(row))
    findings = []
    for key in [*rows, *(key for key in before if key not in rows)]:
        now, then = rows.get(key), before.get(key)
        sometimes = 0 < failed[key] < ran[key]
        change = change_of(now, then, has_baseline=baseline is not None, levels=levels, sometimes=sometimes)
        if change is not None:
            findings.append(finding_of(change, now, then, failed[key], ran[key]))
    return findings


def rule_rows(
    run: Results, known: KnownDefects | None = None, results: Sequence[RowResult] = ()
) -> dict[Key, RowResult]:
    """What rules have found in a run, as rows: one for each rule, which fails if any row shows it.

    Args:
        known: The gate's expectation file; None takes the run as it is.
        results: The rows of the run, marked by that file.
    """
    found = run.rules
    if known is not None:
        raw = (msgspec.structs.replace(each, tags=(), cause="") for each in run.rules)
        found = tuple(apply_rules(raw, known, results))
    return _worst([list(map(as_row, found))])


def rules_changed(
    runs: Sequence[Mapping[Key, RowResult]], baseline: Results | None, *, levels: Sequence[str]
) -> list[GateRow]:
    """What is to be said of the rules. One that a run does not name was not violated in it."""
    before = rule_rows(baseline) if baseline is not None else {}
    rows = _worst([list(run.values()) for run in runs])
    findings = []
    for key, row in (before | rows).items():
        kept = msgspec.structs.replace(row, verdict=Verdict.PASS, reason="", cause="", tags=())
        now, then = rows.get(key, kept), before.get(key, kept if baseline is not None else None)
        failed = sum(key in run and run[key].verdict is Verdict.FAIL for run in runs)
        change = change_of(
            now, then, has_baseline=baseline is not None, levels=levels, sometimes=0 < failed < len(runs)
        )
        if change is not None:
            findings.append(finding_of(change, now, then, failed, len(runs)))
    return findings


def _unmarked(row: RowResult) -> RowResult:
    """The row without what the expectation file of its own run said; the gate's alone counts."""
    tags = tuple(tag for tag in row.tags if tag not in ("expected", "unexpected pass"))
    return msgspec.structs.replace(row, tags=tags, cause="")


def _worst(runs: Sequence[Sequence[RowResult]]) -> dict[Key, RowResult]:
    """Of each row the run in which it went worst."""
    rows: dict[Key, RowResult] = {}
    for run in runs:
        for row in run:
            if row.key not in rows or _weight(row) > _weight(rows[row.key]):
                rows[row.key] = row
    return rows


def _weight(row: RowResult) -> int:
    known = "expected" in row.tags
    return {
        Verdict.FAIL: 5 if known else 6,
        Verdict.HARNESS_ERROR: 4,
        Verdict.NON_STRICT: 3,
        Verdict.PASS: 2,
        Verdict.INCONCLUSIVE: 1,
    }.get(row.verdict, 0)


def change_of(
    now: RowResult | None,
    then: RowResult | None,
    *,
    has_baseline: bool,
    levels: Sequence[str] = ("MUST",),
    sometimes: bool = False,
) -> Change | None:
    """What is to be said of a row; None if it is no news.

    Args:
        then: The row of the baseline, if it has one.
        levels: Those at which no failure is tolerated.
        sometimes: It fails in some of the runs and passes in others.
    """
    if now is None or now.verdict in SKIPPED:
        return Change.VANISHED if then is not None and was_executed(then) else None
    if not was_executed(now):
        return Change.UNJUDGED
    if now.verdict is Verdict.FAIL:
        return _failure(now, then, levels, sometimes)
    if "unexpected pass" in now.tags:
        return Change.UNEXPECTED_PASS
    if then is None:
        return Change.NEW if has_baseline else None
    if then.verdict is Verdict.FAIL:
        return Change.FIXED
    looser = now.verdict is Verdict.NON_STRICT and then.verdict is Verdict.PASS
    return Change.TOLERATED if looser else None


def _failure(now: RowResult, then: RowResult | None, levels: Sequence[str], sometimes: bool) -> Change:
    if "expected" in now.tags:
        return Change.KNOWN
    if now.level in levels:
        return Change.FAILED
    if then is not None and then.verdict in _GOOD:
        return Change.REGRESSED if now.revision == then.revision else Change.SCENARIO_CHANGED
    if sometimes:
        return Change.INTERMITTENT
    if then is not None and then.verdict is Verdict.FAIL and then.criterion != now.criterion:
        return Change.OTHER_FAILURE
    return Change.FAILS


def finding_of(
    change: Change, now: RowResult | None, then: RowResult | None, failed: int, runs: int
) -> GateRow:
    """The row as reports show it; see `GateRow` for `failed` and `runs`."""
    row = now or then
    assert row is not None
    return GateRow(
        id=row.id,
        protocol=row.protocol,
        variant=row.variant,
        level=row.level,
        title=row.title,
        change=change,
        before=then.verdict.value if then is not None else "",
        now=now.verdict.value if now is not None else "",
        criterion=now.criterion if now is not None else "",
        reason=now.reason if now is not None else "",
        cause=now.cause if now is not None else "",
        failed=failed,
        runs=runs,
    )


def _verdict(
    rows: Mapping[Key, RowResult],
    findings: Iterable[GateRow],
    complete: bool,
    executed: float,
    required: float,
    strict: bool,
) -> tuple[ExitCode, list[str]]:
    """The exit code (design contract), and why."""
    counts = Counter(found.change for found in findings)
    codes = set()
    reasons = []
    if errors := sum(row.verdict is Verdict.HARNESS_ERROR for row in rows.values()):
        codes.add(ExitCode.HARNESS)
        reasons.append(f"{_rows(errors)} ended in a harness error")
    if counts[Change.FAILED]:
        codes.add(ExitCode.FAILED)
        what = "MUST or SHOULD" if strict else "MUST"
        reasons.append(f"{what} failed in {_rows(counts[Change.FAILED])}, not known before")
    if not complete:
        codes.add(ExitCode.INCONCLUSIVE)
        reasons.append("a run was cut short: what had not ended by then is missing")
    if executed < required:
        codes.add(ExitCode.INCONCLUSIVE)
        reasons.append(f"{executed:.0%} of the MUST scenarios were executed, {required:.0%} are required")
    if worse := sum(counts[change] for change in WORSE):
        codes.add(ExitCode.REGRESSION)
        reasons.append(f"{_rows(worse)} worse than in the baseline (regressed or vanished)")
    if strict and counts[Change.UNEXPECTED_PASS]:
        codes.add(ExitCode.REGRESSION)
        reasons.append(f"unexpected pass of {_rows(counts[Change.UNEXPECTED_PASS])}")
    return next((code for code in PRECEDENCE if code in codes), ExitCode.OK), reasons


def _rows(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}"
