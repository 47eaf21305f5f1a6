"""A run that was kept, judged by today's rules."""

from __future__ import annotations

from conformance.rules.registry import HARNESS, Finding, judge
from conformance.run.case import Case
from conformance.run.stored import case_of
from fakebrokers.journal.reader import RunLog

LAG_S = 0.5  #: the harness standing still for longer explains whatever has to do with time


def judge_again(case: Case, allows: frozenset[str]) -> list[Finding]:
    """What the rules find in a stored run: nothing where the harness has spoilt it.

    Args:
        allows: Rules that count for nothing in it; see `case_of`.
    """
    if case.harness or case.is_starved or case.lag_s > LAG_S:
        return []
    return [found for found in judge(case) if found.name not in allows and found.name != HARNESS]


def violations(log: RunLog) -> list[tuple[float, str, str]]:
    """Where a stored run violates a rule: seconds on its clock, the rule, and what happened.

    Raises:
        ValueError: Its trace cannot be judged.
    """
    case, allows = case_of(log.trace)
    end_s = case.rows[-1].t if case.rows else 0.0
    return [
        (case.rows[found.rows[-1]].t if found.rows else end_s, found.name, found.detail)
        for found in judge_again(case, allows)
    ]
