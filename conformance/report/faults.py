"""The matrix of clients, their versions, scenarios and faults: in how many runs it went wrong, of how many.

It has thousands of rows, so the page carries it packed and draws what the reader asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from conformance.report.packs import packed
from conformance.results import Verdict
from conformance.suite.scenario import Key

_UNJUDGED = (Verdict.INCONCLUSIVE.value, Verdict.HARNESS_ERROR.value)


class Faults(msgspec.Struct, frozen=True):
    """The matrix.

    Attributes:
        cells: How many there are.
        faults: How many different faults.
        protocols: Of the runs, sorted.
        content: The matrix itself, packed; see `_document`.
    """

    cells: int
    faults: int
    protocols: tuple[str, ...]
    content: str


def by_fault(
    analysis: Mapping[str, Any] | None, anchors: Mapping[Key, str], titles: Mapping[Key, str]
) -> Faults | None:
    """The matrix of an analysis; None where there is none.

    Args:
        anchors: The address of each scenario's page.
        titles: Of the scenarios.
    """
    rows = (analysis or {}).get("faults")
    if not rows:
        return None
    document = _document(rows, anchors, titles)
    protocols = tuple(sorted({row["protocol"] for row in rows}))
    return Faults(len(rows), len(document["faults"]), protocols, packed(document))


def _document(
    rows: Sequence[Mapping[str, Any]], anchors: Mapping[Key, str], titles: Mapping[Key, str]
) -> dict[str, Any]:
    """Names by number, and ``rows`` of numbers.

    A place is protocol, id, variant, address and title. A row is client, place, fault, runs, failed runs,
    runs that could not be judged, and runs with an anomaly by its name, 0 for none.
    """
    clients, places, faults, names = _Numbers(), _Numbers(), _Numbers(), _Numbers()
    table = []
    for row in rows:
        key = row["scenario"], row["protocol"], row["variant"]
        place = row["protocol"], row["scenario"], row["variant"], anchors.get(key, ""), titles.get(key, "")
        verdicts = row["verdicts"]
        table.append(
            [
                clients.of(f"{row['client']} {row['client_version']}".strip()),
                places.of(place),
                faults.of(row["fault"]),
                row["runs"],
                verdicts.get(Verdict.FAIL.value, 0),
                sum(verdicts.get(verdict, 0) for verdict in _UNJUDGED),
                {names.of(name): count for name, count in row["affected"].items()} or 0,
            ]
        )
    return {
        "clients": list(clients.found),
        "places": list(places.found),
        "faults": list(faults.found),
        "names": list(names.found),
        "rows": table,
    }


class _Numbers:
    """A number for each thing, in the order in which they turn up."""

    def __init__(self) -> None:
        self.found: dict[Any, int] = {}

    def of(self, thing: Any) -> int:
        return self.found.setdefault(thing, len(self.found))
