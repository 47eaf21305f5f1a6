"""A run that was kept, judged by today's rules, and shown with what they find."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.rules.registry import HARNESS, Finding, judge
from conformance.rules.sentences import rules
from conformance.run.case import Case
from conformance.run.document import RuleMark, document_of
from conformance.run.stored import case_of
from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.run import DID
from fakebrokers.viewer.document import about_run, logged_rows, of_the_broker, script_rows
from fakebrokers.viewer.rows import Lanes, Row, RunDocument

LAG_S = 0.5  #: the harness standing still for longer explains whatever has to do with time


def judge_again(case: Case, allows: frozenset[str]) -> list[Finding]:
    """What the rules find in a stored run: nothing where the harness has spoilt it.

    Args:
        allows: Rules that count for nothing in it; see `case_of`.
    """
    if case.harness or case.is_starved or case.lag_s > LAG_S:
        return []
    return [found for found in judge(case) if found.name not in allows and found.name != HARNESS]


def violated(case: Case, findings: Iterable[Finding]) -> list[RuleMark]:
    """Where in a run its findings show: the last row that proves each; and what the rules are for."""
    last = len(case.rows) - 1
    return [
        RuleMark(
            max(found.rows, default=last),
            found.name,
            found.detail,
            _reasons(found.name, case.spec.protocol),
            found.rows,
        )
        for found in findings
    ]


def _reasons(name: str, protocol: str) -> list[tuple[str, str]]:
    """What a rule demands and why, label and text; nothing for what is no rule."""
    rule = rules().get(name)
    if rule is None:
        return []
    return [
        ("demands", " ".join(rule.sentences)),
        ("why", rule.why),
        *(("rests on", clause) for clause in rule.clauses(protocol)),
        ("more", f"fakebrokers explain {name}"),
    ]


def stored_document(log: RunLog, logs: Iterable[tuple[str, str]] = ()) -> RunDocument:
    """The page of a stored run: its trace, what the broker knows besides, the rules that it violates today.

    Args:
        logs: What else is known of it; see `of_log`.

    Raises:
        ValueError: Its trace cannot be judged.
    """
    case, allows = case_of(log.trace)
    found = violated(case, judge_again(case, allows))
    title = log.run.name or log.run.run
    did = [row for row in log.ops if row.f == DID]

    def besides(began_s: float, lanes: Lanes) -> list[Row]:
        rows = [*of_the_broker(log, began_s, lanes), *script_rows(did, began_s, lanes)]
        return [*rows, *logged_rows(log, began_s)]

    document = document_of(case, title, dict(about_run(log)), found, besides, has_test=bool(did))
    document.logs += logs
    return document
