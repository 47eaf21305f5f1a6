"""A run that was kept, judged by today's rules, and shown with what they find."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.rules.registry import HARNESS, Finding, judge
from conformance.run.case import Case
from conformance.run.document import Violated, document_of
from conformance.run.stored import case_of
from fakebrokers.journal.reader import RunLog
from fakebrokers.viewer import RunDocument
from fakebrokers.viewer.document import about_run, of_the_broker

LAG_S = 0.5  #: the harness standing still for longer explains whatever has to do with time


def judge_again(case: Case, allows: frozenset[str]) -> list[Finding]:
    """What the rules find in a stored run: nothing where the harness has spoilt it.

    Args:
        allows: Rules that count for nothing in it; see `case_of`.
    """
    if case.harness or case.is_starved or case.lag_s > LAG_S:
        return []
    return [found for found in judge(case) if found.name not in allows and found.name != HARNESS]


def violated(case: Case, findings: Iterable[Finding]) -> list[Violated]:
    """Where in a run its findings show: the last row that proves each."""
    last = len(case.rows) - 1
    return [(max(found.rows, default=last), found.name, found.detail) for found in findings]


def stored_document(log: RunLog) -> RunDocument:
    """The page of a stored run: its trace, what the broker knows besides, the rules that it violates today.

    Raises:
        ValueError: Its trace cannot be judged.
    """
    case, allows = case_of(log.trace)
    found = violated(case, judge_again(case, allows))
    title = log.run.name or log.run.run
    return document_of(
        case, title, dict(about_run(log)), found, lambda began_s, lanes: of_the_broker(log, began_s, lanes)
    )
