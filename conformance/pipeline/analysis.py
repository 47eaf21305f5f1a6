"""All checks and measures over the tables of a journal, written as Parquet and summed up as JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from conformance.checkers.anomaly import NAMES, allowed_names
from conformance.pipeline import checks, measures
from conformance.pipeline.fates import fates
from conformance.pipeline.schema import Tables, load
from conformance.pipeline.wire import wire_keys

ANALYSIS_VERSION = 1
#: Findings of one name that the JSON carries; the Parquet has them all.
SHOWN = 200
_CONTRACTS = ("at-most-once", "at-least-once", "exactly-once", "ordered", "fair")


class Results(msgspec.Struct):
    """The data frames of an analysis."""

    anomalies: DataFrame
    latencies: DataFrame
    matrix: DataFrame
    harness: DataFrame


def analyze(tables: Tables, *, heartbeats: bool = True) -> Results:
    """Everything, as transforms of the tables; nothing is computed yet.

    Args:
        heartbeats: Some run has a heartbeat limit; without any, the check of them is left out.
    """
    runs, frames = tables["runs"], tables["frames"]
    # Every check groups within runs: with each run in one place, none of them has to move rows again.
    ops = tables["ops"].drop("note").repartition("run").persist(StorageLevel.MEMORY_AND_DISK)
    found = fates(ops).persist(StorageLevel.MEMORY_AND_DISK)
    wire = wire_keys(frames.repartition("run")).persist(StorageLevel.MEMORY_AND_DISK)
    findings = [
        checks.lost_write(found, ops, runs),
        checks.duplicate(found),
        checks.unseen(found, ops),
        checks.polls_out_of_order(ops),
        checks.g1a(found),
        checks.phantom_confirm(ops, wire),
        checks.stuck_request(ops, runs),
    ]
    if heartbeats:
        findings.append(checks.missed_heartbeat_ignored(frames, ops, tables["metrics"], runs))
    anomalies = judge(reduce(DataFrame.unionByName, findings), runs).persist()
    return Results(
        anomalies,
        measures.latencies(found, wire, runs),
        measures.matrix(runs, anomalies),
        measures.harness(tables["metrics"], runs),
    )


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
        for word in _CONTRACTS
        if allowed_names(f"ordered {word}")
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
    tables = load(spark, files)
    results = analyze(tables, heartbeats=_any_limit(files["runs"]))
    out.mkdir(parents=True, exist_ok=True)

    def judge_runs() -> list[dict[str, Any]]:
        results.anomalies.repartition(1).write.mode("overwrite").parquet(str(out / "anomalies.parquet"))
        return _small(results.matrix, out / "matrix.parquet")

    def measure() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        latencies = _small(results.latencies, out / "latencies.parquet")
        return latencies, _small(results.harness, out / "harness.parquet")

    with ThreadPoolExecutor(2) as pool:  # planning keeps one core busy, so do two things at a time
        judged, measured = pool.submit(judge_runs), pool.submit(measure)
        matrix, (latencies, harness) = judged.result(), measured.result()
    counts, findings = _findings(out / "anomalies.parquet")
    document = {
        "version": ANALYSIS_VERSION,
        "rows": sum(_length(path) for table in ("frames", "ops", "metrics") for path in files[table]),
        "runs": sum(map(_length, files["runs"])),
        "anomalies": counts,
        "findings": findings,
        "quantiles": list(measures.QUANTILES),
        "latencies": latencies,
        "matrix": matrix,
        "harness": _worst(harness),
        "seconds": round(time.monotonic() - begun, 3),
        "out": str(out),
    }
    (out / "analysis.json").write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    return document


def _small(frame: DataFrame, path: Path) -> list[dict[str, Any]]:
    """Rows of a table that is small whatever the journal, also written to `path`."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql.pandas.types import to_arrow_schema

    rows = [row.asDict() for row in frame.collect()]
    pq.write_table(pa.Table.from_pylist(rows, to_arrow_schema(frame.schema)), path)
    return rows


def _any_limit(paths: Sequence[str]) -> bool:
    import pyarrow.parquet as pq

    limits = (pq.read_table(path, columns=["heartbeat_limit_ms"])[0] for path in paths)
    return any(column.null_count < len(column) for column in limits)


def _length(path: str) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def _findings(folder: Path) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """How often each anomaly was found, and the first `SHOWN` of each name, those not allowed first."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(folder)
    counts: dict[str, int] = {}
    shown: list[dict[str, Any]] = []
    for name in NAMES:
        named = table.filter(pc.equal(table["name"], name))
        if len(named):
            counts[name] = len(named)
            order = [(column, "ascending") for column in ("allowed", "run", "key", "value")]
            shown += named.sort_by(order).slice(0, SHOWN).to_pylist()
    return counts, shown


def _worst(harness: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The worst value of each metric over all runs."""
    worst: dict[str, float] = {}
    for row in harness:
        worst[row["name"]] = max(row["worst"], worst.get(row["name"], row["worst"]))
    return worst
