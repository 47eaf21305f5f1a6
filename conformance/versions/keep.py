"""The verdicts on a version as they are kept: a version is judged again only where rows have changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from conformance.clients.packages import in_order
from conformance.clients.packages.cache import replaced
from conformance.results import RowResult, Verdict
from conformance.suite.scenario import Key, Scenario
from conformance.versions.blame import is_adapters
from fakebrokers import __version__
from fakebrokers.files import json_of

#: Of rows with one of these a version has no verdict.
SILENT = (Verdict.INCONCLUSIVE, Verdict.HARNESS_ERROR)

#: What a reason says of the machine, in the end: no page needs it.
_OF_THE_MACHINE = re.compile(r" \[[^\[\]]* for a processor\]$")


def name_of(key: Key) -> str:
    """A row in a word."""
    return "/".join(part for part in (key[0], key[2]) if part)


class KeptRow(msgspec.Struct, frozen=True):
    """A verdict.

    Attributes:
        revision: Of the scenario.
        steady: Whether its runs were alike.
        looks: How often the row was judged.
    """

    id: str
    protocol: str
    variant: str
    level: str
    verdict: Verdict
    criterion: str = ""
    reason: str = ""
    revision: int = 1
    steady: bool = True
    looks: int = 1

    @property
    def key(self) -> Key:
        """What names the row."""
        return self.id, self.protocol, self.variant

    @property
    def name(self) -> str:
        """The same in a word."""
        return name_of(self.key)

    @property
    def fails(self) -> bool:
        """Whether it is sure that the client is at fault."""
        return self.verdict is Verdict.FAIL and self.steady

    @property
    def passes(self) -> bool:
        """Whether it is sure that it is not."""
        return self.verdict in (Verdict.PASS, Verdict.NON_STRICT) and self.steady

    def seen_again(self, latest: KeptRow) -> KeptRow:
        """The verdict after another look, which counts unless there was nothing to see."""
        if latest.verdict in SILENT:
            return self
        is_alike = (self.fails, self.passes) == (latest.fails, latest.passes)
        return msgspec.structs.replace(self, looks=self.looks + 1, steady=self.steady and is_alike)


class KeptVersion(msgspec.Struct, frozen=True, kw_only=True):
    """All verdicts on a version.

    Attributes:
        refused: Why it could not be judged; empty if it could.
        suite: The suite's version that judged it last.
        judged_on: The day, UTC.
    """

    client: str
    protocol: str
    version: str
    rows: tuple[KeptRow, ...] = ()
    refused: str = ""
    suite: str = ""
    judged_on: str = ""

    @property
    def by_key(self) -> dict[Key, KeptRow]:
        """Its rows."""
        return {row.key: row for row in self.rows}

    def having(self, rows: Iterable[KeptRow]) -> KeptVersion:
        """The same with these rows in place of those of the same names, judged now."""
        latest = self.by_key | {row.key: row for row in rows}
        return _now(self, rows=tuple(latest.values()), refused="")

    def refusing(self, why: str) -> KeptVersion:
        """The same, if it cannot be had or driven now. Verdicts that there are stay."""
        return self if self.rows else _now(self, refused=why)

    def of(self, wanted: Sequence[Scenario]) -> KeptVersion:
        """The same with these rows only, in their order."""
        rows = self.by_key
        return msgspec.structs.replace(
            self, rows=tuple(rows[item.key] for item in wanted if item.key in rows)
        )

    def doubting(self, keys: Set[Key]) -> KeptVersion:
        """The same, where these rows are not steady."""
        rows = (msgspec.structs.replace(row, steady=row.steady and row.key not in keys) for row in self.rows)
        return msgspec.structs.replace(self, rows=tuple(rows))


def _now(kept: KeptVersion, *, rows: tuple[KeptRow, ...] = (), refused: str) -> KeptVersion:
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    return msgspec.structs.replace(kept, rows=rows, refused=refused, suite=__version__, judged_on=today)


class Shelf:
    """Where the versions of a client are kept, each in a file.

    Args:
        out: The folder of the pages.
    """

    def __init__(self, out: Path, client: str, protocol: str) -> None:
        self._client = client
        self._protocol = protocol
        self._place = out / "judged" / f"{client}-{protocol}"

    def load(self, version: str) -> KeptVersion:
        """What is known of a version; no rows if nothing is."""
        path = self._path(version)
        if path.is_file():
            return json_of(path, "verdicts of a scoreboard", KeptVersion)
        return KeptVersion(client=self._client, protocol=self._protocol, version=version)

    def keep(self, kept: KeptVersion) -> KeptVersion:
        """Write it."""
        replaced(self._path(kept.version), msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
        return kept

    def versions(self) -> list[str]:
        """Those that are kept, in order."""
        return in_order(path.stem for path in self._place.glob("*.json"))

    def _path(self, version: str) -> Path:
        return self._place / f"{version}.json"


def stale(kept: KeptVersion, wanted: Sequence[Scenario]) -> list[Scenario]:
    """The rows that have to be judged: those that are new, have changed, or could not be judged before."""
    known = {row.key: row.revision for row in kept.rows if row.verdict not in SILENT}
    return [item for item in wanted if known.get(item.key) != item.revision]


def kept_row(row: RowResult) -> KeptRow:
    """What is kept of a result."""
    return KeptRow(
        row.id,
        row.protocol,
        row.variant,
        row.level,
        Verdict.HARNESS_ERROR if is_adapters(row) else row.verdict,
        row.criterion,
        _OF_THE_MACHINE.sub("", row.reason),
        row.revision,
        "flaky" not in row.tags,
    )
