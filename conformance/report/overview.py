"""The first screen: who was judged against what, which failures are known, which new, and the exit code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from conformance.results import ON_VIRTUAL_TIME, Results, RowResult, RuleResult, Verdict
from conformance.suite.verdicts import scenarios
from fakebrokers.commands import ExitCode

#: What an exit code means, for a reader who does not know the contract.
MEANINGS: Mapping[int, str] = {
    ExitCode.OK: "no MUST fails that is not known",
    ExitCode.FAILED: "the client fails",
    ExitCode.INCONCLUSIVE: "too little was executed to judge",
    ExitCode.HARNESS: "the suite itself failed",
    ExitCode.REGRESSION: "not what was expected",
    ExitCode.USAGE: "wrong usage",
}


class Exit(msgspec.Struct, frozen=True):
    """How one run of a client ended.

    Attributes:
        what: Protocols of the run.
        code: Its exit code.
        why: The reasons, as one sentence.
    """

    what: str
    code: int
    why: str


class FailureCounts(msgspec.Struct, frozen=True):
    """The failures of a client: those that an expectation file names, and the others.

    Attributes:
        known: Expected failures of all levels, and rules of which a violation was expected.
        new: Level and number of the failures that nobody expected, MUST first; levels without one are left
            out.
        surprises: Passes of what was expected to fail.
        rules: Rules for all runs that were violated, which was not expected.
    """

    known: int
    new: tuple[tuple[str, int], ...]
    surprises: int
    rules: int = 0

    @property
    def is_new(self) -> bool:
        """Whether anything failed that nobody expected."""
        return bool(self.new or self.rules)


def tally(results: Sequence[RowResult], rules: Sequence[RuleResult] = ()) -> FailureCounts:
    """Count them; a rule counts once, however many rows show it."""
    failed = [row for row in results if row.verdict is Verdict.FAIL]
    new = [row for row in failed if "expected" not in row.tags]
    levels = ((level, sum(row.level == level for row in new)) for level in ("MUST", "SHOULD", "MAY"))
    return FailureCounts(
        known=len(failed) - len(new) + len({rule.rule for rule in rules if "expected" in rule.tags}),
        new=tuple((level, count) for level, count in levels if count),
        surprises=sum("unexpected pass" in row.tags for row in results),
        rules=len({rule.rule for rule in rules if rule.is_new}),
    )


def timed(rows: Sequence[RowResult]) -> str:
    """Of a client that can be judged on virtual time: how many rows were, and why the others were not."""
    how = [row.how for row in rows if row.how]
    here = how.count(ON_VIRTUAL_TIME)
    if not how:
        return ""
    news = sum(f"{ON_VIRTUAL_TIME}: " in each for each in how)
    return (
        f"{scenarios(here)} judged {ON_VIRTUAL_TIME}, {len(how) - here} in processes, in real time: "
        f"{news} because {ON_VIRTUAL_TIME} they showed what was not known, {len(how) - here - news} because "
        "they need a process"
    )


def exit_of(run: Results) -> Exit:
    """The exit code of a run and why it is that."""
    meaning = MEANINGS.get(run.exit_code, "the run was ended by a signal")
    reasons = "; ".join(run.reasons)
    return Exit(", ".join(_protocols([run])), run.exit_code, f"{meaning}: {reasons}" if reasons else meaning)


def judged_against(runs: Sequence[Results]) -> str:
    """One sentence: who was judged, against which brokers, by how many scenarios, and what was expected."""
    names = list(dict.fromkeys(f"{run.client} {run.client_version}".strip() for run in runs))
    rows = {row.key for run in runs for row in run.results}
    if not rows:
        return ""
    who = _listed(names) if len(names) < 4 else f"{len(names)} clients"
    verb = "was" if len(names) == 1 else "were"
    return f"{who} {verb} judged against {_brokers(runs)}, by {scenarios(len(rows))}; {_expected(runs)}."


def _brokers(runs: Sequence[Results]) -> str:
    """Fakes with the protocols that they speak, and real brokers with their addresses."""
    by_target: dict[str, list[Results]] = defaultdict(list)
    for run in runs:
        by_target[run.target].append(run)
    said = []
    for target, own in by_target.items():
        spoken = _listed(_protocols(own))
        if target:
            said.append(f"a real broker at {target} ({spoken})")
        else:
            versions = _listed(list(dict.fromkeys(run.suite_version for run in own)))
            noun = "fake brokers" if len(_protocols(own)) > 1 else "fake broker"
            said.append(f"the {noun} of fakebrokers {versions} for {spoken}")
    return _listed(said)


def _expected(runs: Sequence[Results]) -> str:
    files = list(dict.fromkeys(run.expected for run in runs if run.expected))
    if not files:
        return "no failure was expected"
    where = _listed(files) if len(files) < 4 else f"{len(files)} expectation files"
    return f"the failures listed in {where} were expected"


def _protocols(runs: Sequence[Results]) -> list[str]:
    return sorted({row.protocol for run in runs for row in run.results})


def _listed(words: Sequence[str]) -> str:
    """The words as people list them."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
