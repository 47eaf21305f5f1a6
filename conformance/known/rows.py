"""Rows as texts: what fails, and what of it.

A row of the suite is ``ID[/VARIANT] [CRITERION ...]`` or ``RULE[/VARIANT] [in ID ...]``; one of generated
runs is ``RULE[: DETAIL]``, as sweep and chaos print what they find, with ``*`` where it may differ.
"""

from __future__ import annotations

import re

from conformance.known.defects import Defect, KnownFinding, KnownRow
from fakebrokers.errors import UsageError

_ID = re.compile(r"[A-Z][A-Z0-9]*-\d+\.\d+")
_IN = "in"


def row_of(text: str, defect: Defect, protocol: str) -> KnownRow:
    """A row of the suite. Raises `UsageError` if the text is none."""
    head, *rest = text.split() or [""]
    name, _, variant = head.partition("/")
    if _ID.fullmatch(name):
        return KnownRow(defect=defect, protocol=protocol, id=name, variant=variant, criteria=tuple(rest))
    if not name or rest[:1] not in ([], [_IN]) or rest == [_IN]:
        expected = "expected a row such as 'RMQS-1.02 in-time' or 'wire-legal in NET-1.05 NET-1.06'"
        raise UsageError(f"{expected}, got {text!r}")
    return KnownRow(defect=defect, protocol=protocol, rule=name, variant=variant, rows=tuple(rest[1:]))


def text_of_row(row: KnownRow) -> str:
    """The text of a row of the suite."""
    head = "/".join(part for part in (row.id or row.rule, row.variant) if part)
    return " ".join([head, *row.criteria, *([_IN] if row.rows else []), *row.rows])


def finding_of(text: str, defect: Defect) -> KnownFinding:
    """A row of generated runs. Raises `UsageError` if the text is none."""
    rule, colon, detail = text.partition(": ")
    if not rule or " " in rule:
        raise UsageError(f"expected a rule, or 'RULE: what it says*', got {text!r}")
    return KnownFinding(defect=defect, rule=rule, detail=detail if colon else "*")


def text_of_finding(row: KnownFinding) -> str:
    """The text of a row of generated runs."""
    return row.rule if row.detail == "*" else f"{row.rule}: {row.detail}"
