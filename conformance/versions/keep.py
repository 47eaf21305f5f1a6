"""The verdicts on a version as they are kept: a version is judged again only where rows have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.packages.cache import replaced
from conformance.results import Results, RowResult, Verdict
from conformance.suite.conform import SuiteRequest, conform
from conformance.suite.scenario import Key, Scenario
from conformance.versions.blame import is_adapters
from conformance.versions.sources import in_a_line
from fakebrokers import __version__
from fakebrokers.errors import UsageError
from fakebrokers.files import json_of


class KeptRow(msgspec.Struct, frozen=True):
    """A verdict.

    Attributes:
        revision: Of the scenario.
        steady: Whether its runs were alike.
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

    @property
    def key(self) -> Key:
        """What names the row."""
        return self.id, self.protocol, self.variant

    @property
    def fails(self) -> bool:
        """Whether it is sure that the client is at fault."""
        return self.verdict is Verdict.FAIL and self.steady

    @property
    def passes(self) -> bool:
        """Whether it is sure that it is not."""
        return self.verdict in (Verdict.PASS, Verdict.NON_STRICT) and self.steady


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


def place_of(out: Path, client: str, protocol: str, version: str) -> Path:
    """Where it is kept."""
    return out / "judged" / f"{client}-{protocol}" / f"{version}.json"


def stale(kept: KeptVersion | None, wanted: Sequence[Scenario]) -> list[Scenario]:
    """The rows that have to be judged: those that are new, have changed, or could not be judged before.

    What could not be judged at all is not tried again until the suite is another one.
    """
    if kept is None or (kept.refused and kept.suite != __version__):
        return list(wanted)
    if kept.refused:
        return []
    silent = (Verdict.INCONCLUSIVE, Verdict.HARNESS_ERROR)
    known = {row.key: row.revision for row in kept.rows if row.verdict not in silent}
    return [item for item in wanted if known.get(item.key) != item.revision]


def judged(
    path: Path,
    blank: KeptVersion,
    wanted: Sequence[Scenario],
    judge: Callable[[Sequence[Scenario]], Results],
) -> KeptVersion:
    """The verdicts on a version, from the file and, where that is stale, from a run; the file is written.

    Args:
        blank: The same without rows.
        wanted: The rows that are returned; others stay in the file.
        judge: Runs rows. `UsageError` or `AdapterFailed` where the version cannot be had, or not be driven.
    """
    kept = json_of(path, "verdicts of a scoreboard", KeptVersion) if path.is_file() else None
    again = stale(kept, wanted)
    if kept is None or again:
        kept = _judged_again(kept, blank, again, judge)
        replaced(path, msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
    rows = kept.by_key
    return msgspec.structs.replace(kept, rows=tuple(rows[item.key] for item in wanted if item.key in rows))


def _judged_again(
    kept: KeptVersion | None,
    blank: KeptVersion,
    again: Sequence[Scenario],
    judge: Callable[[Sequence[Scenario]], Results],
) -> KeptVersion:
    today = {"suite": __version__, "judged_on": datetime.now(UTC).strftime("%Y-%m-%d")}
    try:
        latest = {row.key: row for row in map(_kept, judge(again).results)}
    except (AdapterFailed, UsageError) as error:
        return msgspec.structs.replace(blank, refused=in_a_line(error), **today)
    rows = {**(kept.by_key if kept is not None else {}), **latest}
    return msgspec.structs.replace(blank, rows=tuple(rows.values()), **today)


def _kept(row: RowResult) -> KeptRow:
    return KeptRow(
        row.id,
        row.protocol,
        row.variant,
        row.level,
        Verdict.HARNESS_ERROR if is_adapters(row) else row.verdict,
        row.criterion,
        row.reason,
        row.revision,
        "flaky" not in row.tags,
    )


def run_rows(
    name: str, protocol: str, command: Sequence[str], rows: Sequence[Scenario], parallel: int | None
) -> Results:
    """Judge a version by these rows, and by no others of the same ids."""
    order = SuiteRequest(
        client=name,
        protocol=protocol,
        make_adapter=lambda: ProcessAdapter(command, protocol),
        which="full",
        ids=tuple(dict.fromkeys(row.id for row in rows)),
        parallel=parallel,
    )
    results = conform(order, Console(quiet=True))
    asked = {row.key for row in rows}
    return msgspec.structs.replace(results, results=tuple(row for row in results.results if row.key in asked))
