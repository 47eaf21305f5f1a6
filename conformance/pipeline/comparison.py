"""What became better and what worse since an earlier analysis, row by row, by the rules of the gate.

A row is what a client does in one scenario: its verdicts over all runs, and for each anomaly whether any run
has one that is not allowed. `conformance.gate` decides what a change is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from conformance.gate import WORSE, Change, GateRow, change_of, finding_of
from conformance.pipeline.places import is_there, is_uri, joined, read, shown
from conformance.results import RowResult, Verdict
from fakebrokers.errors import UsageError
from fakebrokers.files import content_of, unfit

_Cell = Mapping[str, Any]
#: Protocol, variant, scenario.
_Place = tuple[str, str, str]
#: Verdicts of runs that judged the client; nobody judges runs outside the suite, but for their anomalies.
_JUDGED = (Verdict.PASS.value, Verdict.NON_STRICT.value, Verdict.FAIL.value, "")


class ChangedRow(msgspec.Struct, frozen=True):
    """A row that changed: what the gate says of it (`criterion` is the anomaly, "" the verdict), and of whom.

    Attributes:
        version, version_before: Of the client, now and in the baseline; "" where it is not there.
    """

    client: str
    version: str
    version_before: str
    finding: GateRow


class AnalysisComparison(msgspec.Struct, frozen=True):
    """Of two analyses.

    Attributes:
        baseline: Where the earlier one is.
        rows: What changed, by weight; rows of which there is no news are left out.
        counts: By the name of the change.
        worse: How many rows regressed or vanished.
    """

    baseline: str
    rows: tuple[ChangedRow, ...]
    counts: dict[str, int]
    worse: int


def in_words(row: Mapping[str, Any]) -> str:
    """A row of a comparison (as in ``analysis.json``) as a line."""
    finding = row["finding"]
    versions = " -> ".join(dict.fromkeys(filter(None, (row["version_before"], row["version"]))))
    where = "/".join(filter(None, (finding["id"], finding["protocol"], finding["variant"])))
    often = f"in {finding['failed']} of {finding['runs']} runs" if finding["failed"] else ""
    what = finding["criterion"] or ("fails" if finding["failed"] else "")
    words = (f"{finding['change']}:", row["client"], versions, where, what, often)
    return " ".join(filter(None, words))


def load_baseline(place: str) -> Mapping[str, Any]:
    """The ``analysis.json`` of an earlier analysis, by its folder, the report that has it, or its own place.

    Raises:
        UsageError: There is none, or it does not say enough, as those of older versions.
    """
    path = place
    if not place.partition("?")[0].endswith(".json"):
        inside = [joined(place, "analysis.json"), joined(place, "analysis", "analysis.json")]
        path = next(filter(is_there, inside), inside[0])
    if not is_there(path):
        raise UsageError(f"{shown(place)}: expected an earlier analysis, found no {shown(path)}")
    try:
        document = msgspec.json.decode(read(path) if is_uri(path) else content_of(Path(path), "an analysis"))
    except (OSError, msgspec.DecodeError, ValueError, RecursionError) as error:
        raise unfit(shown(path), "an analysis", error) from None
    matrix = document.get("matrix") if isinstance(document, dict) else None
    if not isinstance(matrix, list) or not all(isinstance(row, dict) and "affected" in row for row in matrix):
        raise UsageError(f"{shown(path)}: expected an analysis that counts runs by anomaly: make it again")
    found: Mapping[str, Any] = document
    return found


def of_one_client(
    document: Mapping[str, Any], client: str, protocol: str, scenarios: Collection[str] | None = None
) -> Mapping[str, Any]:
    """What an analysis (as in ``analysis.json``) says of one client on one protocol, in all of its versions.

    Args:
        scenarios: Their ids, if only some were asked for: the others have not vanished.
    """
    rows = [row for row in document["matrix"] if (row["client"], row["protocol"]) == (client, protocol)]
    asked = [row for row in rows if scenarios is None or row["scenario"] in scenarios]
    return {**document, "matrix": asked}


def compare(now: Mapping[str, Any], before: Mapping[str, Any], baseline: str) -> AnalysisComparison:
    """Compare two analyses (as in ``analysis.json``): each version of a client with the same one.

    Where one version of a client is left on either side, these two are compared: an upgrade.
    """
    cells, then = _by_client(now["matrix"]), _by_client(before["matrix"])
    found: list[ChangedRow] = []
    for client in sorted({*cells, *then}):
        for version, old in _pairs(cells.get(client, {}), then.get(client, {})):
            here, there = cells.get(client, {}).get(version, {}), then.get(client, {}).get(old, {})
            for place in dict.fromkeys((*here, *there)):
                changes = _changes(place, here.get(place), there.get(place))
                found += [ChangedRow(client, version, old, finding) for finding in changes]
    found.sort(key=lambda row: list(Change).index(row.finding.change))
    counts = Counter(row.finding.change for row in found)
    named = {change.value: count for change, count in counts.items()}
    return AnalysisComparison(shown(baseline), tuple(found), named, sum(counts[change] for change in WORSE))


def _by_client(matrix: Iterable[_Cell]) -> dict[str, dict[str, dict[_Place, _Cell]]]:
    """Cells by client, version and place."""
    found: dict[str, dict[str, dict[_Place, _Cell]]] = {}
    for cell in matrix:
        versions = found.setdefault(cell["client"], {})
        place = cell["protocol"], cell["variant"], cell["scenario"]
        versions.setdefault(cell["client_version"], {})[place] = cell
    return found


def _pairs(now: Iterable[str], before: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Versions that are compared; "" where there is none."""
    left, right = set(now), set(before)
    yield from ((version, version) for version in sorted(left & right))
    new, gone = sorted(left - right), sorted(right - left)
    if len(new) == len(gone) == 1:
        yield new[0], gone[0]
        return
    yield from ((version, "") for version in new)
    yield from (("", version) for version in gone)


def _changes(place: _Place, cell: _Cell | None, then: _Cell | None) -> Iterator[GateRow]:
    """What is to be said of a cell: of its verdict, and of each anomaly."""
    seen = [each["affected"] for each in (cell, then) if each is not None and cell is not None]
    for name in ("", *sorted({name for affected in seen for name in affected})):
        now, before = _result(place, cell, name), _result(place, then, name)
        failed, runs = _often(cell, name)
        change = change_of(now, before, has_baseline=True, sometimes=0 < failed < runs)
        if change is Change.UNJUDGED and before is not None and before.verdict is Verdict.INCONCLUSIVE:
            continue  # it was not judged then either
        if change is not None and not (name and change is Change.NEW):
            yield finding_of(change, now, before, failed, runs)


def _often(cell: _Cell | None, name: str) -> tuple[int, int]:
    """In how many runs it went wrong, of how many."""
    if cell is None:
        return 0, 0
    if name:
        return cell["affected"].get(name, 0), cell["runs"]
    judged = {verdict: count for verdict, count in cell["verdicts"].items() if verdict in _JUDGED}
    return judged.get(Verdict.FAIL.value, 0), sum(judged.values())


def _result(place: _Place, cell: _Cell | None, name: str) -> RowResult | None:
    """A cell as a row of results: it fails if any run does."""
    if cell is None:
        return None
    protocol, variant, scenario = place
    failed, runs = _often(cell, name)
    unsure = any(word in cell["verdicts"] for word in (Verdict.INCONCLUSIVE, Verdict.HARNESS_ERROR))
    none = Verdict.INCONCLUSIVE if unsure else Verdict.UNSUPPORTED
    verdict = Verdict.FAIL if failed else Verdict.PASS if runs else none
    return RowResult(scenario, protocol, variant, "SHOULD", verdict, criterion=name)
