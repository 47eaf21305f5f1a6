"""Results against what is known of the client: what was expected, and what was expected to fail and passed.

One cause may be in many rows: it is one defect, whatever it breaks. Any other criterion of the same scenario
that fails is news, and so is the rule in the run of another row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

import msgspec

from conformance.known.defects import PASSED, Key, KnownDefects, KnownRow
from conformance.results import RowResult, RuleResult, Verdict
from conformance.rules import INVARIANTS, Finding
from conformance.suite.judge import Judgement
from conformance.suite.verdicts import was_executed


def foresee(known: KnownDefects, judgement: Judgement) -> bool | None:
    """Whether it is known (True), or a pass of what always fails (False); else None."""
    return known.foresee(judgement.scenario.key, judgement.verdict, judgement.criterion_id)


def news(known: KnownDefects, judgement: Judgement) -> list[Finding]:
    """The violated rules of which nothing is known.

    A failure that is known explains what rules find in its run.
    """
    if judgement.verdict is Verdict.FAIL and foresee(known, judgement):
        return []
    return [each for each in judgement.broken if known.knows(each.name, judgement.scenario.key) is None]


def apply(results: Iterable[RowResult], known: KnownDefects) -> list[RowResult]:
    """Tag what was expected (``expected``) and what was expected to fail and passed (``unexpected pass``)."""
    entries: dict[Key, list[KnownRow]] = defaultdict(list)
    for each in known.rows:
        entries[each.key].append(each)
    return [_marked(row, entries[row.key]) if row.key in entries else row for row in results]


def _marked(row: RowResult, entries: list[KnownRow]) -> RowResult:
    for entry in entries:
        if entry.fits(row.verdict, row.criterion):
            reason = f"{row.reason} [known: {entry.why}]"
            return msgspec.structs.replace(
                row, tags=(*row.tags, "expected"), reason=reason, cause=entry.cause
            )
    if row.verdict in PASSED:
        if any(entry.is_steady for entry in entries):
            return msgspec.structs.replace(row, tags=(*row.tags, "unexpected pass"))
    elif any(entry.verdict is row.verdict for entry in entries):
        names = ", ".join(sorted({name for entry in entries for name in entry.criteria}))
        return msgspec.structs.replace(row, reason=f"{row.reason} [{row.criterion}; known is only {names}]")
    return row


def apply_rules(
    rules: Iterable[RuleResult], known: KnownDefects, results: Iterable[RowResult]
) -> list[RuleResult]:
    """Tag what was expected, and split what was expected in some of its rows only.

    Args:
        results: The rows of the same run, with their tags. One that fails as expected explains what rules
            have found in it. What the file expects of a rule in rows that all were judged, and none of them
            shows, is an ``unexpected pass``.
    """
    rows = {row.key: row for row in results}
    marked: list[RuleResult] = []
    seen: set[KnownRow] = set()
    for rule in rules:
        parts: dict[str, list[str]] = defaultdict(list)
        for name in rule.rows:
            key = name, rule.protocol, rule.variant
            listed = known.knows(rule.rule, key)
            seen.update([listed] if listed is not None else [])
            row = rows.get(key)
            explained = row.cause if row is not None and "expected" in row.tags else ""
            parts[listed.cause if listed is not None else explained].append(name)
        marked += [_marked_rule(rule, tuple(names), cause) for cause, names in parts.items()]
    judged = {key for key, row in rows.items() if was_executed(row)}
    missed = [each for each in known.rows if each.rule and each not in seen]
    return marked + [_unseen(each) for each in missed if not each.sometimes and _is_judged(each, judged)]


def _marked_rule(rule: RuleResult, rows: tuple[str, ...], cause: str) -> RuleResult:
    tags = (*rule.tags, "expected") if cause else rule.tags
    return msgspec.structs.replace(rule, rows=rows, tags=tags, cause=cause)


def _is_judged(known: KnownRow, judged: Collection[Key]) -> bool:
    """Whether all rows in which it is expected were judged; what names none is expected in no certain one."""
    found = {key[0] for key in judged if key[1] == known.protocol and known.variant in ("", key[2])}
    return bool(known.rows) and found.issuperset(known.rows)


def _unseen(known: KnownRow) -> RuleResult:
    rule = INVARIANTS[known.rule]
    return RuleResult(
        rule=known.rule,
        protocol=known.protocol,
        variant=known.variant,
        level=rule.level,
        verdict=Verdict.PASS,
        rows=known.rows,
        reason="violated in none of its rows",
        about=rule.about,
        tags=("unexpected pass",),
    )


def causes(results: Iterable[RowResult | RuleResult]) -> list[str]:
    """The root causes of the known failures: how many defects there are."""
    return list(dict.fromkeys(row.cause for row in results if row.cause))
