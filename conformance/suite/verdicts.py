"""From verdicts to an exit code, and what to call a client that skips too much."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from conformance.results import RowResult, RuleResult, Verdict
from fakebrokers.commands import ExitCode

#: Share of the MUST scenarios for the declared roles that has to be executed.
EXECUTED_SHARE = 0.9
SKIPPED = (Verdict.UNSUPPORTED, Verdict.PROFILE)
#: Of several exit codes the first of these.
PRECEDENCE = (ExitCode.USAGE, ExitCode.HARNESS, ExitCode.FAILED, ExitCode.INCONCLUSIVE, ExitCode.REGRESSION)


def executed_share(results: Iterable[RowResult]) -> float:
    """Share of the MUST scenarios that were run: not skipped for a missing capability, not inconclusive.

    Where no MUST is for this client, 1 if anything was run at all.
    """
    every = list(results)
    rows = [r for r in every if r.level == "MUST" and r.verdict is not Verdict.PROFILE]
    if not rows:
        return 1.0 if any(map(was_executed, every)) else 0.0
    return sum(map(was_executed, rows)) / len(rows)


def was_executed(row: RowResult) -> bool:
    """Whether the client was judged by it."""
    return row.verdict in (Verdict.PASS, Verdict.NON_STRICT, Verdict.FAIL)


def exit_code(
    results: Iterable[RowResult],
    rules: Iterable[RuleResult] = (),
    *,
    strict: bool = False,
    incomplete: bool = False,
) -> ExitCode:
    """The exit code of a run (design contract); see `judged`."""
    return judged(results, rules, strict=strict, incomplete=incomplete)[0]


def judged(
    results: Iterable[RowResult],
    rules: Iterable[RuleResult] = (),
    *,
    strict: bool = False,
    incomplete: bool = False,
) -> tuple[ExitCode, list[str]]:
    """The exit code of a run, and why it is not 0: a part of a sentence for each reason.

    Args:
        strict: SHOULD counts like MUST, and an expected failure that passes is a regression.
        incomplete: The adapter lacks core ops of a role that it declares.
    """
    rows, rules = list(results), list(rules)
    levels = ("MUST", "SHOULD") if strict else ("MUST",)
    errors = sum(row.verdict is Verdict.HARNESS_ERROR for row in rows)
    new = sum(
        row.verdict is Verdict.FAIL and row.level in levels and "expected" not in row.tags for row in rows
    )
    broken = sorted({each.rule for each in rules if each.is_new and each.level in levels})
    surprises = sum("unexpected pass" in row.tags for row in rows) if strict else 0
    outdated = sum("unexpected pass" in each.tags for each in rules) if strict else 0
    share = executed_share(rows)
    found = [
        (ExitCode.HARNESS, errors, f"{scenarios(errors)} ended in a harness error"),
        (ExitCode.FAILED, new, f"{' or '.join(levels)} failed in {scenarios(new)}, which was not expected"),
        (ExitCode.FAILED, bool(broken), f"{violated(broken)}, which was not expected"),
        (ExitCode.INCONCLUSIVE, incomplete, "the adapter lacks core ops of a role that it declares"),
        (
            ExitCode.INCONCLUSIVE,
            share < EXECUTED_SHARE,
            f"{share:.0%} of the MUST scenarios were executed, {EXECUTED_SHARE:.0%} are required",
        ),
        (ExitCode.REGRESSION, surprises, f"{scenarios(surprises)} passed that were expected to fail"),
        (ExitCode.REGRESSION, outdated, f"no row violates what {outdated} entries of rules expect"),
    ]
    codes = {code for code, applies, _ in found if applies}
    code = next((each for each in PRECEDENCE if each in codes), ExitCode.OK)
    return code, [reason for _, applies, reason in found if applies]


def violated(rules: Sequence[str]) -> str:
    """The rules that were violated, in words."""
    return f"{', '.join(rules)} {'was' if len(rules) == 1 else 'were'} violated"


def scenarios(count: int) -> str:
    """A number of scenarios, in words."""
    return f"{count} scenario{'s' * (count != 1)}"
