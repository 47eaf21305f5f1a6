"""The pieces of an analysis. Each is judged alone, and leaves its findings and its summary in the folder of
results: a caller that asks again takes them from there, so a second analysis of a growing folder does what is
    new.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.pipeline.columns import GROUPS, RULES, FileSet, Findings
from conformance.pipeline.columns.drill_down import messages_in
from conformance.pipeline.columns.fileset import WHOLE
from conformance.pipeline.places import is_there, joined, located, read, shown, write
from conformance.pipeline.sources import SealedFiles
from conformance.pipeline.summary import CELL, SHOWN, CellCounts, Samples, Summary, in_order, packed, unpacked
from conformance.rules.anomalies.anomaly import allowed_names
from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

#: Raised when the checks change what they find: pieces of an older one are judged again.
REVISION = 3
#: Rows up to which it does not pay to judge a file set by several groups of checks at once.
SMALL = 500_000
#: Rows of a file set for which one process has enough to do with the messages alone.
PART_ROWS = 5_000_000
#: Parts in which they are judged at most: each of them reads all rows.
MOST_PARTS = 8
#: File sets from which on there is enough to do for everybody.
MANY = 64
ANOMALIES, MESSAGES, PARTS = "anomalies.parquet", "messages.parquet", "parts"
_EVIDENCE = ("client", "client_version", "protocol", "variant", "scenario", "requirement", "seed")


class Unit(msgspec.Struct, frozen=True):
    """One file set, and groups of checks (`conformance.pipeline.columns.GROUPS`) for it.

    Attributes:
        name: Of its files in the folder of results.
        source: Name of the `SealedFiles` that it is of.
        tells: It also tells about runs and metrics, which only one unit of a file set may.
        part: Of the messages, where their checks are split: part k of n.
    """

    name: str
    source: str
    paths: dict[str, str]
    groups: tuple[str, ...]
    reports: bool
    part: tuple[int, int] = WHOLE


def planned(sources: Sequence[SealedFiles], rules: bool = False) -> list[Unit]:
    """The units of an analysis, the largest first.

    Args:
        rules: Traces are judged by the rules for all runs, too.
    """
    split = len(sources) < MANY
    units = []
    for source in sorted(sources, key=lambda each: -each.rows):
        whole = (tuple(GROUPS), WHOLE)
        pieces = list(_pieces(source.rows)) if split and source.rows > SMALL else [whole]
        for number, (groups, part) in enumerate(pieces):
            name = f"{source.name}-{REVISION}-{'-'.join(groups)}"
            if part != WHOLE:
                name += f"-{part[0] + 1}of{part[1]}"
            units.append(Unit(name, source.name, source.paths, groups, number == len(pieces) - 1, part))
    return units + [_unit_of_rules(source) for source in sources if rules]


def _unit_of_rules(source: SealedFiles) -> Unit:
    """Named by the edition of the rules, too: what others have judged is judged again."""
    from conformance.pipeline.columns.rules import edition

    return Unit(f"{source.name}-{REVISION}-{RULES}-{edition()}", source.name, source.paths, (RULES,), False)


def _checks(group: str) -> Sequence[Callable[[FileSet, Findings], None]]:
    if group != RULES:
        return GROUPS[group]
    from conformance.pipeline.columns.rules import judge_traces

    return (judge_traces,)


def _pieces(rows: int) -> Iterator[tuple[tuple[str, ...], tuple[int, int]]]:
    """Groups of checks, and parts of the messages, for file sets of that size."""
    parts = min(MOST_PARTS, -(-rows // PART_ROWS))
    for name in GROUPS:
        for which in range(parts if name == "messages" else 1):
            yield (name,), (which, parts) if name == "messages" else WHOLE


def judged(unit: Unit, out: str) -> Summary:
    """Judge a unit, or read what an earlier analysis found; see `PARTS` and `ANOMALIES` in `out`.

    The summary appears last, so where there is one all of it is there. Content depends on the unit alone:
    a unit that two workers judge at a time comes out the same.
    """
    import pyarrow as pa

    pa.set_cpu_count(1)  # the caller has a process for each core
    earlier = kept(unit, out)
    if earlier is not None:
        return earlier
    try:
        tables, summary = _anew(unit)
    except UsageError as error:
        return Summary(damaged={unit.source: str(error)})
    try:
        for name, table in tables.items():
            _write_table(table, joined(out, name, f"part-{unit.name}.parquet"))
        write(joined(out, PARTS, f"{unit.name}.msgpack"), packed(summary))
    except OSError as error:
        return Summary(problems=[f"{shown(out)}: cannot be written on {platform.node()}: {error}"])
    return summary


def _anew(unit: Unit) -> tuple[dict[str, pa.Table], Summary]:
    """The tables, where anything was found, and the summary."""
    system, _ = located(unit.paths["runs"])
    files = FileSet({table: located(path)[1] for table, path in unit.paths.items()}, system, unit.part)
    findings, summary = Findings(), Summary()
    if unit.reports:
        files.check()
        _report(files, summary)
    for group in unit.groups:
        for check in _checks(group):
            check(files, findings)
    summary.judged, summary.unread = findings.judged, findings.unread
    runs = {row["run"]: row for row in files.runs}
    tables = {}
    if findings.found:
        tables[ANOMALIES] = _table(findings, runs)
        tables[MESSAGES] = messages_in(files, findings.found)
        _count(tables[ANOMALIES], runs, files.faults, summary)
    for (measure, run), histogram in findings.latencies.items():
        summary.add(Summary(latencies={(*_cell(runs[run]), measure): histogram}))
    return tables, summary


def kept(unit: Unit, out: str) -> Summary | None:
    """What an earlier analysis found, if it is all there."""
    place = joined(out, PARTS, f"{unit.name}.msgpack")
    try:
        summary = unpacked(read(place))
    except (OSError, msgspec.MsgspecError):
        return None
    parts = [joined(out, name, f"part-{unit.name}.parquet") for name in (ANOMALIES, MESSAGES)]
    return summary if not summary.counts or all(map(is_there, parts)) else None


def anomalies_schema() -> pa.Schema:
    """The columns of the anomalies: the finding, and what is known of its run."""
    import pyarrow as pa

    text = ("name", "run", "key", "value", "process")
    known = [(name, pa.int64() if name == "seed" else pa.string()) for name in _EVIDENCE]
    return pa.schema(
        [
            *((name, pa.string()) for name in text),
            ("seqs", pa.list_(pa.int64())),
            ("detail", pa.string()),
            ("allowed", pa.bool_()),
            *known,
        ]
    )


def _report(files: FileSet, summary: Summary) -> None:
    """Runs and metrics."""
    cells, faults = {}, files.faults
    for row in files.runs:
        cell = cells[row["run"]] = _cell(row)
        one = CellCounts(1, int(not row["ended"]), 0, {row["verdict"] or "": 1})
        _add(summary, cell, faults.get(row["run"], ()), one)
    metrics = files.read("metrics", "run", "name", "value").unify_dictionaries()  # each row group has its own
    if len(metrics):
        grouped = metrics.group_by(["run", "name"]).aggregate(
            [("value", "count"), ("value", "max"), ("value", "sum")]
        )
        for row in grouped.to_pylist():
            part = Samples(row["value_count"], row["value_max"], row["value_sum"])
            summary.add(Summary(harness={(*cells[row["run"]], row["name"]): part}))


def _add(summary: Summary, cell: tuple[str, ...], faults: Sequence[str], tally: CellCounts) -> None:
    """Count in the cell, and in the cell with each of these faults."""
    summary.matrix.setdefault(cell, CellCounts()).add(tally)
    for fault in faults or ("",):
        summary.faults.setdefault((*cell, fault), CellCounts()).add(tally)


def _cell(run: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple([run[name] or "" for name in CELL])


def _table(findings: Findings, runs: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """All findings, with what is known of their runs and whether the contracts allow them."""
    import pyarrow as pa

    schema = anomalies_schema()
    columns: list[Any] = [list(column) for column in zip(*findings.found, strict=True)]
    names, of = columns[0], columns[1]
    may = {run: allowed_names(row["contract"] or "") for run, row in runs.items()}
    columns.append([name in may[run] for name, run in zip(names, of, strict=True)])
    columns += [[runs[run][name] for run in of] for name in _EVIDENCE]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _count(
    table: pa.Table,
    runs: Mapping[str, Mapping[str, Any]],
    faults: Mapping[str, Sequence[str]],
    summary: Summary,
) -> None:
    """Counts by name and by cell, and the findings that are shown."""
    import pyarrow.compute as pc

    for name in table["name"].unique().to_pylist():
        named = table.filter(pc.equal(table["name"], name))
        summary.counts[name] = len(named)
        summary.allowed[name] = pc.sum(named["allowed"]).as_py()
        order = [(column, "ascending") for column in ("allowed", "run", "key", "value")]
        summary.shown[name] = in_order(named.sort_by(order).slice(0, SHOWN).to_pylist())
    bad = table.filter(pc.invert(table["allowed"])).group_by(["run", "name"]).aggregate([([], "count_all")])
    for row in bad.to_pylist():
        tally = CellCounts(anomalies=row["count_all"], affected={row["name"]: 1})
        _add(summary, _cell(runs[row["run"]]), faults.get(row["run"], ()), tally)


def _write_table(table: pa.Table, place: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    write(place, buffer.getvalue().to_pybytes())
