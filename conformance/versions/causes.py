"""What the newest version of a client gets wrong, each cause once, the gravest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from fnmatch import fnmatchcase

import msgspec

from conformance.findings import RootCause
from conformance.known.defects import KnownDefects
from conformance.report.gravity import GRAVITY
from conformance.suite.scenario import Key, Scenario
from conformance.versions.keep import KeptRow, KeptVersion

COSMETIC = "cosmetic"
#: Of findings, which say what a user loses, and of requirements, which say how much they matter.
ORDER = (
    *(
        "data loss",
        "wrong data",
        "critical",
        "high",
        "hang",
        "crash",
        "medium",
        "leak",
        "wrong error",
        "low",
        "",
    ),
    *("needs a broken server", "allowed by the standard", COSMETIC),
)


class BoardCause(msgspec.Struct, frozen=True):
    """Why rows of the newest version fail.

    Attributes:
        severity: One of `ORDER`.
        rows: Names of the rows.
        since: From which of the versions shown on one of the rows or another has always failed, in words.
        is_known: Whether somebody has said why; else `title` is that of the row.
        says: What happened in the first row.
        finding: The root cause with its program; None if there is none.
    """

    title: str
    severity: str
    rows: tuple[str, ...]
    since: str
    is_known: bool
    says: str = ""
    finding: RootCause | None = None


def causes_of(
    library: str,
    judged: Sequence[KeptVersion],
    wanted: Sequence[Scenario],
    findings: Iterable[RootCause],
    defects: KnownDefects,
) -> tuple[BoardCause, ...]:
    """Those of the last version: findings first, then what a file of known defects says, then each criterion.

    Args:
        judged: At least one version, the oldest first.
    """
    newest = judged[-1]
    left = {row.key: row for row in newest.rows if row.fails}
    found = []
    for finding in findings:
        rows = [row for row in newest.rows if row.fails and row.id in finding.scenarios]
        if rows and newest.version in finding.versions.split(", ") and finding.name == library:
            title, severity = finding.title, finding.severity
            found.append(_cause(title, severity, rows, judged, is_known=True, finding=finding))
            left = {key: row for key, row in left.items() if row not in rows}
    found += _explained(left, judged, wanted, defects)
    return tuple(sorted(found, key=lambda each: ORDER.index(each.severity)))


def _explained(
    left: Mapping[Key, KeptRow],
    judged: Sequence[KeptVersion],
    wanted: Sequence[Scenario],
    defects: KnownDefects,
) -> Iterator[BoardCause]:
    requirements = {item.key: item.requirement for item in wanted}
    is_about = fnmatchcase(judged[-1].version, defects.client_version or "*")
    alike: dict[tuple[str, str, bool], list[KeptRow]] = {}
    for row in left.values():
        fitting = (each for each in defects.rows if each.key == row.key)
        entry = next((each for each in fitting if each.fits(row.verdict, row.criterion)), None)
        if entry is not None and is_about:
            which = entry.cause, entry.defect.severity, True
        else:
            which = f"{row.id} {row.criterion}", "", False
        alike.setdefault(which, []).append(row)
    for (cause, said, is_known), rows in alike.items():
        about = [requirements[row.key] for row in rows]
        severity = said or min((each.severity for each in about), key=_gravity)
        title = cause if is_known else about[0].title
        yield _cause(title, severity if severity in ORDER else "", rows, judged, is_known=is_known)


def _gravity(severity: str) -> int:
    return GRAVITY.index(severity if severity in GRAVITY else "")


def _cause(
    title: str,
    severity: str,
    rows: Sequence[KeptRow],
    judged: Sequence[KeptVersion],
    *,
    is_known: bool,
    finding: RootCause | None = None,
) -> BoardCause:
    names = tuple(row.name for row in rows)
    since = _since({row.key for row in rows}, judged)
    return BoardCause(title, severity, names, since, is_known, rows[0].reason, finding)


def _since(keys: Set[Key], judged: Sequence[KeptVersion]) -> str:
    since = ""
    for each in reversed(judged):
        rows = [row for row in each.rows if row.key in keys]
        if not any(row.fails for row in rows):
            passed = bool(rows) and all(row.passes for row in rows)
            return f"since {since}" if passed else f"at least since {since}"
        since = each.version
    return "in all versions here"
