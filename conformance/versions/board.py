"""What a scoreboard shows, worked out from the verdicts on all versions: nothing is run here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from conformance.findings import SEVERITIES, RootCause
from conformance.report.gravity import GRAVITY
from conformance.results import Verdict
from conformance.suite.scenario import Key, Scenario
from conformance.versions.keep import KeptRow, KeptVersion

#: Of causes that nobody has explained yet, by what the requirement says of its weight.
UNEXPLAINED = "unexplained"
COSMETIC = "cosmetic"


class BoardCell(msgspec.Struct, frozen=True):
    """A verdict in the table: a word for its look, and what it says."""

    look: str
    sign: str
    says: str


class Line(msgspec.Struct, frozen=True):
    """A row of the suite over all versions of a client, the oldest first."""

    key: Key
    title: str
    level: str
    cells: tuple[BoardCell, ...]

    @property
    def name(self) -> str:
        """The row in a word."""
        return _name(self.key)


class BoardCause(msgspec.Struct, frozen=True):
    """Why rows of the newest version fail.

    Attributes:
        finding: The root cause with its program; None where nobody has found it yet.
        rows: Names of the rows.
        since: The first of the versions shown from which on at least one of the rows has always failed.
        says: What happened in the first row.
    """

    title: str
    severity: str
    rows: tuple[str, ...]
    since: str
    says: str = ""
    finding: RootCause | None = None


class Release(msgspec.Struct, frozen=True):
    """A version, and what it changed.

    Attributes:
        mended, broken: Names of rows, compared with the last version before it that could be judged.
        before: That version; empty if there is none.
    """

    kept: KeptVersion
    passed: int
    failed: int
    unjudged: int
    before: str
    mended: tuple[str, ...]
    broken: tuple[str, ...]


class ClientBoard(msgspec.Struct, frozen=True):
    """A client: its releases, the oldest first, and what the newest one gets wrong, the gravest first."""

    client: str
    library: str
    protocol: str
    releases: tuple[Release, ...]
    causes: tuple[BoardCause, ...]
    lines: tuple[Line, ...]

    @property
    def newest(self) -> Release:
        """The last one that could be judged, or the last one."""
        return next((each for each in reversed(self.releases) if each.kept.rows), self.releases[-1])

    @property
    def grave(self) -> list[BoardCause]:
        """All but the cosmetic ones."""
        return [each for each in self.causes if each.severity != COSMETIC]

    @property
    def cosmetic(self) -> list[BoardCause]:
        """What changes nothing for a user."""
        return [each for each in self.causes if each.severity == COSMETIC]

    @property
    def page(self) -> str:
        """Its file."""
        return f"{self.client}-{self.protocol}.html"


def board(
    library: str, versions: Sequence[KeptVersion], wanted: Sequence[Scenario], known: Iterable[RootCause]
) -> ClientBoard:
    """A client, from at least one version of it, the oldest first."""
    titles = {item.key: (item.requirement.title, item.requirement.severity) for item in wanted}
    lines = tuple(
        _line(item, versions) for item in wanted if any(item.key in each.by_key for each in versions)
    )
    return ClientBoard(
        versions[0].client,
        library,
        versions[0].protocol,
        _releases(versions),
        _causes([each for each in versions if each.rows], titles, known),
        lines,
    )


def _name(key: Key) -> str:
    return "/".join(part for part in (key[0], key[2]) if part)


def _releases(versions: Sequence[KeptVersion]) -> tuple[Release, ...]:
    found: list[Release] = []
    before: KeptVersion | None = None
    for each in versions:
        then: dict[Key, KeptRow] = before.by_key if before is not None else {}
        both = [(row, then[row.key]) for row in each.rows if row.key in then]
        found.append(
            Release(
                each,
                sum(row.passes for row in each.rows),
                sum(row.fails for row in each.rows),
                sum(not row.passes and not row.fails for row in each.rows),
                before.version if before is not None else "",
                tuple(_name(now.key) for now, old in both if old.fails and now.passes),
                tuple(_name(now.key) for now, old in both if old.passes and now.fails),
            )
        )
        before = each if each.rows else before
    return tuple(found)


def _causes(
    judged: Sequence[KeptVersion], titles: Mapping[Key, tuple[str, str]], known: Iterable[RootCause]
) -> tuple[BoardCause, ...]:
    """What the newest version gets wrong: known root causes first, then what is left, by criterion."""
    if not judged:
        return ()
    newest = judged[-1]
    left = {row.key: row for row in newest.rows if row.fails}
    found = []
    for finding in known:
        if finding.client != newest.client or newest.version not in finding.versions.split(", "):
            continue
        rows = [row for row in newest.rows if row.fails and row.id in finding.scenarios]
        if rows:
            found.append(_cause(finding.title, finding.severity, rows, judged, finding))
            for row in rows:
                left.pop(row.key, None)
    alike: dict[str, list[KeptRow]] = {}
    for row in left.values():
        alike.setdefault(f"{row.id} {row.criterion}", []).append(row)
    rest = [(titles[rows[0].key], rows) for rows in alike.values() if rows[0].key in titles]
    rest.sort(key=lambda each: GRAVITY.index(each[0][1] if each[0][1] in GRAVITY else ""))
    found += [_cause(title, UNEXPLAINED, rows, judged, None) for (title, _), rows in rest]
    order = (*SEVERITIES[:-1], UNEXPLAINED, COSMETIC)
    return tuple(sorted(found, key=lambda each: order.index(each.severity)))


def _cause(
    title: str,
    severity: str,
    rows: Sequence[KeptRow],
    judged: Sequence[KeptVersion],
    finding: RootCause | None,
) -> BoardCause:
    keys = {row.key for row in rows}
    since = judged[-1].version
    for each in reversed(judged):
        if not any(row.fails for row in each.rows if row.key in keys):
            break
        since = each.version
    return BoardCause(title, severity, tuple(_name(row.key) for row in rows), since, rows[0].reason, finding)


def _line(item: Scenario, versions: Sequence[KeptVersion]) -> Line:
    cells = tuple(_cell(each.by_key.get(item.key)) for each in versions)
    return Line(item.key, item.requirement.title, item.requirement.level, cells)


def _cell(row: KeptRow | None) -> BoardCell:
    if row is None:
        return BoardCell("skip", "·", "not judged")
    if row.fails:
        return BoardCell("fail", "✗", row.reason or "fails")
    if row.passes:
        return BoardCell("pass", "✓", "passes")
    if row.verdict in (Verdict.UNSUPPORTED, Verdict.PROFILE):
        return BoardCell("skip", "-", "not for this client")
    return BoardCell("skip", "~" if not row.steady else "?", "not steady" if not row.steady else "not judged")
