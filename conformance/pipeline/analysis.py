"""All checks and measures over the tables of a journal, written as Parquet and summed up as JSON."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from conformance.checkers.anomaly import ALLOWED_BY, NAMES, allowed_names
from conformance.pipeline import checks, measures
from conformance.pipeline.fates import fates
from conformance.pipeline.schema import Tables, load
from conformance.pipeline.session import SMALL
from conformance.pipeline.wire import wire_keys

if TYPE_CHECKING:
    import pyarrow as pa

ANALYSIS_VERSION = 1
#: Findings of one name that the JSON carries; the Parquet has them all.
SHOWN = 200


class Shared(msgspec.Struct):
    """What several checks and measures start from, computed once."""

    ops: DataFrame
    found: DataFrame  #: see `fates`
    wire: DataFrame  #: see `wire_keys`


class Results(msgspec.Struct):
    """The data frames of an analysis."""

    anomalies: DataFrame
    latencies: DataFrame
    matrix: DataFrame
    harness: DataFrame


def analyze(tables: Tables) -> Results:
    """Everything, as transforms of the tables; nothing is computed yet."""
    shared, runs = share(tables), tables["runs"]
    anomalies = find(tables, shared).persist()
    return Results(
        anomalies,
        measures.latencies(shared.found, shared.wire, runs),
        measures.matrix(runs, anomalies),
        measures.harness(tables["metrics"], runs),
    )


def share(tables: Tables) -> Shared:
    """The tables that are read more than once."""
    ops = _by_run(tables["ops"].drop("note")).persist()
    return Shared(ops, fates(ops).persist(), wire_keys(_by_run(tables["frames"])).persist())


def find(tables: Tables, shared: Shared, *, heartbeats: bool = True) -> DataFrame:
    """All anomalies.

    Args:
        heartbeats: Some run has a heartbeat limit; without any, the check of them is left out.
    """
    runs, ops, found = tables["runs"], shared.ops, shared.found
    findings = [
        checks.lost_write(found, ops, runs),
        checks.duplicate(found),
        checks.unseen(found, ops),
        checks.polls_out_of_order(ops),
        checks.g1a(found),
        checks.phantom_confirm(ops, shared.wire),
        checks.stuck_request(ops, runs),
    ]
    if heartbeats:
        findings.append(checks.missed_heartbeat_ignored(tables["frames"], ops, tables["metrics"], runs))
    return judge(reduce(DataFrame.unionByName, findings), runs)


def _by_run(frame: DataFrame) -> DataFrame:
    """Every check groups within runs: with each run in one place, none of them has to move rows again."""
    if frame.sparkSession.conf.get("spark.sql.shuffle.partitions") == "1":
        return frame.coalesce(1)
    return frame.repartition("run")


def judge(findings: DataFrame, runs: DataFrame) -> DataFrame:
    """Findings with what is known of their runs, and whether the contract allows them."""
    known = ("run", "client", "client_version", "protocol", "variant", "scenario", "requirement", "seed")
    return findings.join(F.broadcast(runs.select(*known, "contract")), "run").select(
        *checks.FINDING[:-1], "detail", _allowed().alias("allowed"), *known[1:]
    )


def _allowed() -> Column:
    """`conformance.checkers.anomaly.allowed_names` as an expression."""
    words = F.split("contract", r"\s+")
    by_word = [
        F.array_contains(words, word) & F.col("name").isin(*allowed_names(f"ordered {word}"))
        for word in ALLOWED_BY
    ]
    unordered = (
        (F.trim("contract") != "")
        & ~F.array_contains(words, "ordered")
        & F.col("name").isin(*allowed_names("exactly-once"))
    )
    return reduce(Column.__or__, by_word, unordered)


def run_analysis(spark: SparkSession, files: Mapping[str, Sequence[str]], out: Path) -> dict[str, Any]:
    """Analyse sealed journals; returns what ``analysis.json`` holds.

    Writes ``anomalies``, ``latencies``, ``matrix`` and ``harness`` as Parquet, and ``analysis.json``.
    """
    begun = time.monotonic()
    rows = sum(_length(path) for table in ("frames", "ops", "metrics") for path in files[table])
    tables = load(spark, files)
    shared, runs = share(tables), tables["runs"]
    out.mkdir(parents=True, exist_ok=True)
    (out / "analysis.json").unlink(
        missing_ok=True
    )  # should this one fail, no older one stands beside its tables

    def measure() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        latencies = _small(measures.latencies(shared.found, shared.wire, runs), out / "latencies.parquet")
        return latencies, _small(measures.harness(tables["metrics"], runs), out / "harness.parquet")

    with ThreadPoolExecutor(1) as pool:
        measured = pool.submit(measure)  # computes what is shared, while the checks are still being planned
        anomalies = find(tables, shared, heartbeats=_any_limit(files["runs"])).persist()
        counts, allowed, findings = _findings(_anomalies(anomalies, out / "anomalies.parquet", rows))
        # One after the other: tasks of two queries that want the same part would wait for each other.
        matrix = _small(measures.matrix(runs, anomalies), out / "matrix.parquet")
        latencies, harness = measured.result()
    document = {
        "version": ANALYSIS_VERSION,
        "rows": rows,
        "runs": sum(map(_length, files["runs"])),
        "broken_off": sum(row["broken_off"] for row in matrix),
        "anomalies": counts,
        "allowed": allowed,
        "findings": findings,
        "quantiles": list(measures.QUANTILES),
        "latencies": latencies,
        "matrix": matrix,
        "harness": _worst(harness),
        "seconds": round(time.monotonic() - begun, 3),
        "out": str(out),
    }
    draft = out / "analysis.json.part"
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    draft.replace(out / "analysis.json")
    return document


def _small(frame: DataFrame, path: Path) -> list[dict[str, Any]]:
    """Rows of a table that is small whatever the journal, also written to `path`."""
    import pyarrow.parquet as pq

    table = _gathered(frame)
    pq.write_table(table, path)
    rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
    return rows


def _anomalies(frame: DataFrame, folder: Path, rows: int) -> pa.Table:
    """The anomalies in a journal of that many rows, also written to `folder`.

    Spark writes large tables in parallel, but takes a second to get its writer going.
    """
    import pyarrow.parquet as pq

    if rows > SMALL:
        frame.repartition(1).write.mode("overwrite").parquet(str(folder))
        return pq.read_table(folder)
    table = _gathered(frame)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    pq.write_table(table, folder / "part-0.parquet")
    return table


def _gathered(frame: DataFrame) -> pa.Table:
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    rows = [row.asDict() for row in frame.collect()]
    return pa.Table.from_pylist(rows, to_arrow_schema(frame.schema))


def _any_limit(paths: Sequence[str]) -> bool:
    import pyarrow.parquet as pq

    limits = (pq.read_table(path, columns=["heartbeat_limit_ms"])[0] for path in paths)
    return any(column.null_count < len(column) for column in limits)


def _length(path: str) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def _findings(table: pa.Table) -> tuple[dict[str, int], dict[str, int], list[dict[str, Any]]]:
    """How often each anomaly was found, how often that was allowed, and the first `SHOWN` of each name,
    those not allowed first.
    """
    import pyarrow.compute as pc

    counts: dict[str, int] = {}
    allowed: dict[str, int] = {}
    shown: list[dict[str, Any]] = []
    for name in NAMES:
        named = table.filter(pc.equal(table["name"], name))
        if len(named):
            counts[name] = len(named)
            allowed[name] = pc.sum(named["allowed"]).as_py()
            order = [(column, "ascending") for column in ("allowed", "run", "key", "value")]
            shown += named.sort_by(order).slice(0, SHOWN).to_pylist()
    return counts, allowed, shown


def _worst(harness: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The worst value of each metric over all runs."""
    worst: dict[str, float] = {}
    for row in harness:
        worst[row["name"]] = max(row["worst"], worst.get(row["name"], row["worst"]))
    return worst
