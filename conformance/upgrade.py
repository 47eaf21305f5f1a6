"""Whether one may go from one version of a client to another: what gets worse by it, and what better.

Unlike the gate, which asks whether a client is good enough, this looks at differences alone: what fails in
both versions stops nobody.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import pairwise, zip_longest

import msgspec

from conformance.gate import WORSE, Change, GateRow, change_of, finding_of, rule_rows, rules_changed
from conformance.results import Results, Verdict
from conformance.suite.scenario import Key
from conformance.suite.verdicts import PRECEDENCE
from conformance.versions.blame import is_adapters
from conformance.versions.differences import Differences
from fakebrokers.commands import ExitCode

#: What reports show of a row; a row that was not judged in one of the two says nothing about the client.
_TOLD = (*WORSE, Change.OTHER_FAILURE, Change.TOLERATED, Change.FIXED)


class Upgrade(msgspec.Struct, frozen=True, kw_only=True):
    """From one version to another.

    Attributes:
        older: Version, as the adapter says it; where one comes from.
        newer: Where one goes to.
        findings: The rows that differ, the worse first.
        worse: How many of them stop one: of what is used.
        better: How many fail in the older version alone.
        unjudged: How many rows say nothing, of what is used: the adapter, which is for another version, calls
            what one of the two does not have.
        behaviour: What differs besides, in generated runs; None if that was not asked for.
        answer: A sentence.
        exit_code: 0: nothing gets worse; 4: something does; 2 or 3: a run says too little.
    """

    client: str
    older: str
    newer: str
    findings: tuple[GateRow, ...]
    worse: int
    better: int
    unjudged: int = 0
    behaviour: Differences | None = None
    answer: str
    exit_code: int


def upgrades(
    runs: Sequence[Results],
    uses: Sequence[str] = (),
    behaviours: Iterable[Differences | None] = (),
) -> list[Upgrade]:
    """From each version to the next one, in the order in which they were asked for; see `upgrade`."""
    pairs = zip_longest(pairwise(runs), behaviours)
    return [upgrade(older, newer, uses, behaviour) for (older, newer), behaviour in pairs]


def upgrade(
    older: Results, newer: Results, uses: Sequence[str] = (), behaviour: Differences | None = None
) -> Upgrade:
    """Compare two versions of one client, row by row.

    Args:
        uses: Ids, sections (``RMQS-3``), families (``NET``) and rules that somebody relies on: nothing else
            stops them. Without any, everything does.
        behaviour: What differs in generated runs; a rule that only the newer version violates there stops
            them, too.
    """
    silent = {row.key for row in (*older.results, *newer.results) if is_adapters(row)}
    findings = _findings(older, newer, silent)
    worse = sum(found.change in WORSE and _is_used(found.id, uses) for found in findings)
    better = sum(found.change is Change.FIXED for found in findings)
    unjudged = sum(_is_used(key[0], uses) for key in silent)
    swept = [each.rule for each in behaviour.findings if each.is_worse] if behaviour is not None else []
    broken = [rule for rule in swept if _is_used(rule, uses)]
    code = _code((older, newer), worse + len(broken), unjudged)
    counts = _counts(worse, better, unjudged, broken, is_part=bool(uses))
    return Upgrade(
        client=newer.client,
        older=older.client_version,
        newer=newer.client_version,
        findings=tuple(findings),
        worse=worse,
        better=better,
        unjudged=unjudged,
        behaviour=behaviour,
        answer=_answer(older, newer, counts, code),
        exit_code=int(code),
    )


def _findings(older: Results, newer: Results, silent: Container[Key]) -> list[GateRow]:
    """Rules and rows that differ, the worse first."""
    then = {row.key: row for row in older.results if row.key not in silent}
    now = {row.key: row for row in newer.results if row.key not in silent}
    rules = rules_changed([rule_rows(newer)], older, levels=())
    findings = [found for found in rules if found.change in _TOLD]
    for key in [*now, *(key for key in then if key not in now)]:
        # no level is one at which failures are not tolerated: what failed before is no news
        change = change_of(now.get(key), then.get(key), has_baseline=True, levels=())
        if change in _TOLD:
            failed = now[key].verdict is Verdict.FAIL if key in now else False
            findings.append(finding_of(change, now.get(key), then.get(key), int(failed), 1))
    return sorted(findings, key=lambda found: list(Change).index(found.change))


def _code(runs: Sequence[Results], worse: int, unjudged: int) -> ExitCode:
    codes = {ExitCode.REGRESSION} if worse else set()
    if unjudged or not all(run.complete for run in runs):
        codes.add(ExitCode.INCONCLUSIVE)
    codes |= {ExitCode(run.exit_code) for run in runs} & {ExitCode.HARNESS, ExitCode.INCONCLUSIVE}
    return next((each for each in PRECEDENCE if each in codes), ExitCode.OK)


def _is_used(id: str, uses: Sequence[str]) -> bool:
    words = {id.upper(), id.upper().partition(".")[0], id.upper().partition("-")[0]}
    return not uses or any(each.upper() in words for each in uses)


def _counts(worse: int, better: int, unjudged: int, broken: Sequence[str], *, is_part: bool) -> str:
    counts = f"{_rows(worse)}{' that you use' if is_part else ''} worse, {_rows(better)} better"
    if broken:
        counts += f"; in generated runs it violates what the older one kept: {', '.join(broken)}"
    if unjudged:
        counts += f"; {_rows(unjudged)} not judged: the adapter calls what one of the versions does not have"
    return counts


def _answer(older: Results, newer: Results, counts: str, code: ExitCode) -> str:
    """For people."""
    question = f"May I upgrade {newer.client} from {older.client_version} to {newer.client_version}?"
    if code in (ExitCode.HARNESS, ExitCode.INCONCLUSIVE):
        return f"{question} Not known, too little could be judged: {counts}"
    return f"{question} {'No' if code is ExitCode.REGRESSION else 'Yes'}: {counts}"


def _rows(count: int) -> str:
    return f"{count or 'no'} row{'s' * (count != 1)}"
