"""What the rules for all runs have found of one client: once for each violation, whatever rows show it."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from conformance.clients.adapter.profile import ops_of
from conformance.results import Level, RowResult, RuleResult, Verdict
from conformance.rules import INVARIANTS, Finding
from conformance.suite.judgement import Judgement

#: The gravest first.
LEVELS: tuple[Level, ...] = ("MUST", "SHOULD", "MAY")
#: What differs from run to run in the sentence of one and the same violation: what is quoted, words that have
#: a figure in them (numbers, addresses, ids, names such as ``node-7``), and names in several parts.
_DIFFERS = re.compile(r"b?'(?:\\.|[^'\\])*'|b?\"(?:\\.|[^\"\\])*\"|[\w:/@.-]*\d[\w:/@.-]*|\w+(?:\.\w+)+")
#: One of something is the same as many of it.
_COUNTED = re.compile(r"(?<=_ )(\w+?)s\b")


def rule_results(judgement: Judgement) -> list[RuleResult]:
    """What they have found in the run of one scenario."""
    return [_result(judgement, finding) for finding in judgement.broken]


def joined(results: Iterable[RuleResult]) -> list[RuleResult]:
    """Each violation once, those of most rows first.

    Runs show the same violation if rule, protocol and variant are the same, and the sentence about it but for
    what differs from run to run (`_kind_of`). It is as grave as the gravest row that shows it: what is seen
    only in rows of what a client SHOULD do is no violated MUST.
    """
    found: dict[tuple[str, ...], RuleResult] = {}
    for new in results:
        key = new.rule, new.protocol, new.variant, new.verdict, _kind_of(new)
        found[key] = _both(found[key], new) if key in found else new
    return sorted(found.values(), key=lambda each: -len(each.rows))


def _kind_of(rule: RuleResult) -> str:
    """The sentence without numbers, names and ops: a rule that is broken in one way is so in any op."""
    ops = ops_of(rule.protocol)
    words = _COUNTED.sub(r"\1", _DIFFERS.sub("_", rule.reason))
    return re.sub(r"\w+", lambda word: "_" if word[0] in ops else word[0], words)


def as_row(rule: RuleResult) -> RowResult:
    """The violation as a row among those of scenarios, for what shows rows alone."""
    count = f"{len(rule.rows)} row{'s' * (len(rule.rows) != 1)}"
    return RowResult(
        id=rule.rule,
        protocol=rule.protocol,
        variant=rule.variant,
        level=rule.level,
        verdict=rule.verdict,
        title=rule.about,
        requirement=rule.about,
        tags=rule.tags,
        cause=rule.cause,
        reason=f"{count}: {rule.reason}",
        story=(f"seen in the runs of {', '.join(rule.rows)}",),
    )


def _result(judgement: Judgement, finding: Finding) -> RuleResult:
    rule = INVARIANTS[finding.name]
    item = judgement.scenario
    is_doubted = finding.name in judgement.doubted
    why = judgement.lag if judgement.is_starved else "the machine kept client and harness waiting"
    return RuleResult(
        rule=finding.name,
        protocol=item.protocol,
        variant=item.variant,
        level=max(finding.level, item.requirement.level, key=LEVELS.index),
        verdict=Verdict.INCONCLUSIVE if is_doubted else Verdict.FAIL,
        rows=(item.id,),
        reason=f"{finding.text}; but {why}" if is_doubted else finding.text,
        about=rule.about,
    )


def _both(first: RuleResult, second: RuleResult) -> RuleResult:
    return msgspec.structs.replace(
        first,
        level=min(first.level, second.level, key=LEVELS.index),
        rows=tuple(dict.fromkeys((*first.rows, *second.rows))),
    )
