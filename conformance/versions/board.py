"""What a scoreboard shows, worked out from the verdicts on all versions: nothing is run here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from conformance.findings import RootCause
from conformance.known.defects import KnownDefects
from conformance.results import Verdict
from conformance.suite.scenario import Key, Scenario
from conformance.versions.causes import COSMETIC, BoardCause, causes_of
from conformance.versions.keep import KeptRow, KeptVersion, name_of


class BoardCell(msgspec.Struct, frozen=True):
    """A verdict in the table: its look, a sign, what that means, and what happened."""

    look: str
    sign: str
    word: str
    says: str = ""


PASSES = BoardCell("pass", "✓", "passes")
FAILS = BoardCell("fail", "✗", "fails")
UNSTEADY = BoardCell("skip", "~", "not steady")
UNJUDGED = BoardCell("skip", "?", "not judged")
UNFIT = BoardCell("skip", "-", "not for this client")
LEGEND = (PASSES, FAILS, UNSTEADY, UNJUDGED, UNFIT)


class Line(msgspec.Struct, frozen=True):
    """A row of the suite over all versions of a client, the oldest first."""

    key: Key
    title: str
    level: str
    cells: tuple[BoardCell, ...]

    @property
    def name(self) -> str:
        """The row in a word."""
        return name_of(self.key)


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
    """A client.

    Attributes:
        is_released: Whether one can ask for a version of it.
        releases: The oldest first.
        causes: What the newest one gets wrong, the gravest first.
    """

    client: str
    library: str
    protocol: str
    is_released: bool
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
    def telling(self) -> list[Line]:
        """Rows that not all judged versions pass."""
        return [line for line in self.lines if not self._is_quiet(line)]

    @property
    def quiet(self) -> list[Line]:
        """The others."""
        return [line for line in self.lines if self._is_quiet(line)]

    def _is_quiet(self, line: Line) -> bool:
        both = zip(self.releases, line.cells, strict=True)
        return all(cell is PASSES for release, cell in both if not release.kept.refused)

    @property
    def newest_asked(self) -> str:
        """How the newest one is asked for."""
        return f"{self.client}=={self.newest.kept.version}" if self.is_released else self.client

    @property
    def page(self) -> str:
        """Its file."""
        return f"{self.client}-{self.protocol}.html"


def board(
    library: str,
    versions: Sequence[KeptVersion],
    wanted: Sequence[Scenario],
    findings: Iterable[RootCause],
    defects: KnownDefects | None = None,
    *,
    is_released: bool = True,
) -> ClientBoard:
    """A client, from at least one version of it, the oldest first.

    Args:
        findings: The root causes that have a program.
        defects: What else is known of the client. A row that fails sometimes there is not steady here.
    """
    known = defects or KnownDefects()
    unsteady = {row.key for row in known.rows if row.sometimes}
    versions = [each.doubting(unsteady) for each in versions]
    lines = [_line(item, versions) for item in wanted if any(item.key in each.by_key for each in versions)]
    judged = [each for each in versions if each.rows]
    return ClientBoard(
        versions[0].client,
        library,
        versions[0].protocol,
        is_released,
        _releases(versions),
        causes_of(library, judged, wanted, findings, known) if judged else (),
        tuple(lines),
    )


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
                tuple(now.name for now, old in both if old.fails and now.passes),
                tuple(now.name for now, old in both if old.passes and now.fails),
            )
        )
        before = each if each.rows else before
    return tuple(found)


def _line(item: Scenario, versions: Sequence[KeptVersion]) -> Line:
    cells = tuple(_cell(each.by_key.get(item.key)) for each in versions)
    return Line(item.key, item.requirement.title, item.requirement.level, cells)


def _cell(row: KeptRow | None) -> BoardCell:
    if row is None:
        return UNJUDGED
    if row.fails:
        return msgspec.structs.replace(FAILS, says=row.reason)
    if row.passes:
        return PASSES
    if row.verdict in (Verdict.UNSUPPORTED, Verdict.PROFILE):
        return UNFIT
    return UNJUDGED if row.steady else UNSTEADY
