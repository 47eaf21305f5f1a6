"""From verdicts to an exit code, and what to call a client that skips too much."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.results import Result, Verdict
from fakebrokers.commands import ExitCode

#: Share of the MUST scenarios for the declared roles that has to be executed.
EXECUTED_SHARE = 0.9
SKIPPED = (Verdict.UNSUPPORTED, Verdict.PROFILE)
#: Of several exit codes the first of these.
PRECEDENCE = (ExitCode.USAGE, ExitCode.HARNESS, ExitCode.FAILED, ExitCode.INCONCLUSIVE, ExitCode.REGRESSION)


def executed_share(results: Iterable[Result]) -> float:
    """Share of the MUST scenarios that were run: not skipped for a missing capability, not inconclusive.

    Where no MUST is for this client, 1 if anything was run at all.
    """
    every = list(results)
    rows = [r for r in every if r.level == "MUST" and r.verdict is not Verdict.PROFILE]
    if not rows:
        return 1.0 if any(map(was_executed, every)) else 0.0
    return sum(map(was_executed, rows)) / len(rows)


def was_executed(row: Result) -> bool:
    """Whether the client was judged by it."""
    return row.verdict in (Verdict.PASS, Verdict.NON_STRICT, Verdict.FAIL)


def exit_code(results: Iterable[Result], *, strict: bool = False, incomplete: bool = False) -> ExitCode:
    """The exit code of a run (design contract).

    Args:
        strict: SHOULD counts like MUST, and an expected failure that passes is a regression.
        incomplete: The adapter lacks core ops of a role that it declares.
    """
    rows = list(results)
    levels = ("MUST", "SHOULD") if strict else ("MUST",)
    codes = {ExitCode.OK}
    for row in rows:
        if row.verdict is Verdict.HARNESS_ERROR:
            codes.add(ExitCode.HARNESS)
        elif row.verdict is Verdict.FAIL and row.level in levels and "expected" not in row.tags:
            codes.add(ExitCode.FAILED)
        if strict and "unexpected pass" in row.tags:
            codes.add(ExitCode.REGRESSION)
    if incomplete or executed_share(rows) < EXECUTED_SHARE:
        codes.add(ExitCode.INCONCLUSIVE)
    return next((code for code in PRECEDENCE if code in codes), ExitCode.OK)
