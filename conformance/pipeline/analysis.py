"""From journals to tables (Parquet) and ``analysis.json``."""

from __future__ import annotations

import itertools
import posixpath
import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.pipeline.columns import drill_down
from conformance.pipeline.comparison import compare
from conformance.pipeline.places import joined, located, names_in, remove, shown, write
from conformance.pipeline.salvage import SkippedRun
from conformance.pipeline.sources import SealedFiles, left_of
from conformance.pipeline.summary import CELL, QUANTILES, Summary
from conformance.pipeline.units import ANOMALIES, MESSAGES, PARTS, Unit, anomalies_schema, planned
from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

ANALYSIS_VERSION = 1
DOCUMENT = "analysis.json"
#: Of runs that cannot be judged, those that an error names.
REFUSED_SHOWN = 5

#: Judges all units: gets them, the folder of results and how many rows there are.
Judge = Callable[[Sequence[Unit], str, int], Summary]


def run_analysis(
    sources: Sequence[SealedFiles],
    out: str,
    judge: Judge,
    before: Mapping[str, Any] | None = None,
    baseline: str = "",
    *,
    left_out: Sequence[SkippedRun] = (),
    strict: bool = False,
    rules: bool = False,
) -> dict[str, Any]:
    """Analyse sealed journals; returns what ``analysis.json`` holds.

    Args:
        left_out: Runs that are left out already; those that cannot be judged come besides.
        strict: Refuse the whole for a run that cannot be judged.
        rules: Judge traces by the rules for all runs, too.
        before: The document of an earlier analysis to compare with.
        baseline: What that is called.

    Writes ``anomalies``, ``messages`` (those that a finding names), ``latencies``, ``matrix``, ``faults``
    (the matrix by fault) and ``harness`` as Parquet, and ``analysis.json``. What an earlier analysis of the
    same folder has left there is used again; what belongs to files that are gone is removed.

    Raises:
        UsageError: No run can be judged, or, if that is wanted, not all; or nothing can be written.
    """
    begun = time.monotonic()
    remove(joined(out, DOCUMENT))  # should this one fail, no older one is left beside its tables
    sources, summary, left_out = _judged(sources, out, judge, left_out, strict=strict, rules=rules)
    _tidy(out, planned(sources, rules), summary)
    latencies, matrix = summary.rows_of_latencies(), summary.rows_of_matrix()
    harness, faults = summary.rows_of_harness(), summary.rows_of_faults()
    tables = {"latencies": latencies, "matrix": matrix, "faults": faults, "harness": harness}
    for name, found in tables.items():
        _write_rows(found, _schemas()[name], joined(out, f"{name}.parquet"))
    document = {
        "version": ANALYSIS_VERSION,
        "rows": sum(source.rows for source in sources),
        "runs": sum(source.runs for source in sources),
        "broken_off": sum(row["broken_off"] for row in matrix),
        "open": sum(source.open for source in sources),
        "aside": [msgspec.to_builtins(each) for each in left_out],
        "anomalies": dict(sorted(summary.counts.items())),
        "allowed": dict(sorted(summary.allowed.items())),
        "findings": summary.findings(),
        "traces": {"judged": summary.judged, "unread": dict(sorted(summary.unread.items()))}
        if rules
        else None,
        "quantiles": list(QUANTILES),
        "latencies": latencies,
        "matrix": matrix,
        "faults": faults,
        "harness": _worst(harness),
        "comparison": compare({"matrix": matrix}, before, baseline) if before is not None else None,
        "seconds": round(time.monotonic() - begun, 3),
        "out": shown(out),
    }
    content = msgspec.json.encode(document)
    write(joined(out, DOCUMENT), msgspec.json.format(content, indent=1) + b"\n")
    plain: dict[str, Any] = msgspec.json.decode(content)
    return plain


def _judged(
    sources: Sequence[SealedFiles],
    out: str,
    judge: Judge,
    left_out: Sequence[SkippedRun],
    *,
    strict: bool,
    rules: bool,
) -> tuple[Sequence[SealedFiles], Summary, Sequence[SkippedRun]]:
    """What is judged, what that comes to, and what is left out.

    What cannot be judged because of some of its runs is judged again without these, and at last not at all.
    What has been judged is not judged again: its units are in `out`.
    """
    for attempt in itertools.count():
        _refuse_if(left_out, strict=strict or not sources)
        summary = judge(planned(sources, rules), out, sum(source.rows for source in sources))
        if summary.problems:
            raise UsageError("; ".join(dict.fromkeys(summary.problems)))
        if not summary.damaged:
            break
        scratch = joined(out, "converted")
        sources, more = left_of(sources, summary.damaged, scratch, none=attempt > 0)
        left_out = [*left_out, *more]
    return sources, summary, left_out


def _refuse_if(left_out: Sequence[SkippedRun], *, strict: bool) -> None:
    """Raise `UsageError` for what cannot be judged, if that is wanted."""
    if left_out and strict:
        more = f"; and {len(left_out) - REFUSED_SHOWN} more" if len(left_out) > REFUSED_SHOWN else ""
        raise UsageError("; ".join(map(str, left_out[:REFUSED_SHOWN])) + more)


def _tidy(out: str, units: Sequence[Unit], summary: Summary) -> None:
    """Remove parts that no unit of this analysis has; a table without rows has one empty part."""
    mine = {f"part-{unit.name}.parquet" for unit in units} if summary.counts else {"part-none.parquet"}
    for table, schema in ((ANOMALIES, anomalies_schema()), (MESSAGES, drill_down.schema())):
        if not summary.counts:
            _write_rows([], schema, joined(out, table, "part-none.parquet"))
        _remove_others(joined(out, table), mine)
    _remove_others(joined(out, PARTS), {f"{unit.name}.msgpack" for unit in units})


def _remove_others(folder: str, kept: Set[str]) -> None:
    for name in names_in(folder):
        if name not in kept:
            remove(joined(folder, name))


def _schemas() -> dict[str, pa.Schema]:
    import pyarrow as pa

    cell = [(name, pa.string()) for name in CELL]
    counted, measured = pa.int64(), pa.float64()
    by_name = pa.map_(pa.string(), counted)
    tally = [
        ("runs", counted),
        ("broken_off", counted),
        ("verdicts", by_name),
        ("anomalies", counted),
        ("affected", by_name),
    ]
    return {
        "latencies": pa.schema(
            [*cell, ("measure", pa.string()), ("messages", counted), ("quantiles_ms", pa.list_(measured))]
        ),
        "matrix": pa.schema([*cell, *tally]),
        "faults": pa.schema([*cell, ("fault", pa.string()), *tally]),
        "harness": pa.schema(
            [*cell, ("name", pa.string()), ("samples", counted), ("worst", measured), ("mean", measured)]
        ),
    }


def _write_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema, place: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [
        pa.array(
            [
                list(row[field.name].items()) if pa.types.is_map(field.type) else row[field.name]
                for row in rows
            ],
            field.type,
        )
        for field in schema
    ]
    system, path = located(place)
    system.create_dir(posixpath.dirname(path), recursive=True)
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=schema), buffer)
    write(place, buffer.getvalue().to_pybytes())


def _worst(harness: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The worst value of each metric over all runs."""
    worst: dict[str, float] = {}
    for row in harness:
        worst[row["name"]] = max(row["worst"], worst.get(row["name"], row["worst"]))
    return worst
