"""What became better and what worse since an earlier analysis, as the page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from conformance.gate import WORSE, Change
from conformance.report.packs import packed
from conformance.suite.scenario import Key

#: What each change means, for a reader who does not know the gate.
MEANINGS: Mapping[Change, str] = {
    Change.REGRESSED: "It was good in the baseline, and fails now.",
    Change.VANISHED: "The baseline has a verdict, and now there is none.",
    Change.INTERMITTENT: "Flaky: it fails in some of the runs, as it may have done before.",
    Change.UNJUDGED: "Judged in the baseline, and inconclusive now.",
    Change.FAILS: "It fails as it did before, or there was none before.",
    Change.FIXED: "It failed in the baseline, and is good now.",
    Change.NEW: "The baseline does not have it.",
}


class Count(msgspec.Struct, frozen=True):
    """How many rows changed in one way."""

    change: str
    count: int
    meaning: str
    is_worse: bool


class ReportComparison(msgspec.Struct, frozen=True):
    """All that changed.

    Attributes:
        baseline: What the earlier analysis is called.
        worse: How many rows regressed or vanished.
        content: A row for each change, packed; see `_row`.
    """

    baseline: str
    worse: int
    counts: tuple[Count, ...]
    content: str

    @property
    def sentence(self) -> str:
        """The counts in a line."""
        return ", ".join(f"{each.count} {each.change}" for each in self.counts) or "nothing changed"


def compared(analysis: Mapping[str, Any] | None, anchors: Mapping[Key, str]) -> ReportComparison | None:
    """What an analysis says of its baseline; None where it has none.

    Args:
        anchors: The address of each scenario's page.
    """
    found = (analysis or {}).get("comparison")
    if found is None:
        return None
    counts = tuple(
        Count(change.value, found["counts"][change.value], MEANINGS.get(change, ""), change in WORSE)
        for change in Change
        if found["counts"].get(change.value)
    )
    rows = [_row(row, anchors) for row in found["rows"]]
    return ReportComparison(found["baseline"], found["worse"], counts, packed(rows))


def _row(row: Mapping[str, Any], anchors: Mapping[Key, str]) -> list[str | int]:
    """Change, client, versions, scenario, its address, anomaly, verdict before, verdict now, failed, runs."""
    finding = row["finding"]
    key = finding["id"], finding["protocol"], finding["variant"]
    return [
        finding["change"],
        row["client"],
        " → ".join(dict.fromkeys(filter(None, (row["version_before"], row["version"])))),
        "/".join(filter(None, key)),
        anchors.get(key, ""),
        finding["criterion"],
        *(_verdict(finding[when]) for when in ("before", "now")),
        finding["failed"],
        finding["runs"],
    ]


def _verdict(word: str) -> str:
    return word or "none"
