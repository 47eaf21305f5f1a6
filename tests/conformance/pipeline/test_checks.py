"""The checks on Spark find what the checkers in process find."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.checkers import check
from conformance.checkers.anomaly import NAMES
from fakebrokers.journal.reader import RunLog
from tests.conformance.telltale import TELLTALE, logs_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # PySpark leaves sockets to the garbage collector
]

_path = Path(__file__).parents[1] / "checkers" / "histories.py"
_spec = importlib.util.spec_from_file_location("histories_for_spark", _path)
assert _spec is not None and _spec.loader is not None
h: Any = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = h
_spec.loader.exec_module(h)


def tables(spark: Any, logs: list[RunLog]) -> Any:
    """The tables of these runs, without a detour over the disk."""
    from conformance.pipeline.schema import spark_schema

    rows = {
        "runs": [log.run for log in logs],
        "frames": [row for log in logs for row in log.frames],
        "ops": [row for log in logs for row in log.ops],
        "metrics": [row for log in logs for row in log.metrics],
    }
    return {
        table: spark.createDataFrame([msgspec.structs.astuple(row) for row in part], spark_schema(table))
        for table, part in rows.items()
    }


@pytest.fixture(params=["1", "3"])
def partitions(spark: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """All rows in one place, as in small journals, and spread out, as in large ones."""
    setting = "spark.sql.shuffle.partitions"
    before = spark.conf.get(setting)
    spark.conf.set(setting, request.param)
    yield
    spark.conf.set(setting, before)


@pytest.mark.usefixtures("partitions")
def test_generated_histories_are_judged_alike(spark: Any) -> None:
    from conformance.pipeline.analysis import analyze

    logs = [h.generated(seed, f"run-{seed}") for seed in range(400)]
    expected = [anomaly for log in logs for anomaly in check(log)]
    rows = analyze(tables(spark, logs)).anomalies.collect()
    fields = ("run", "name", "key", "value", "process", "seqs", "allowed", "detail")
    found = Counter(tuple(tuple(row[f]) if f == "seqs" else row[f] for f in fields) for row in rows)
    wanted = Counter(tuple(getattr(anomaly, f) for f in fields) for anomaly in expected)
    assert sorted((found - wanted).elements()) == []
    assert sorted((wanted - found).elements()) == []
    often = Counter(anomaly.name for anomaly in expected)
    assert all(often[name] >= 10 for name in NAMES), f"the generator hardly makes some anomalies: {often}"
    assert 0.05 < sum(anomaly.allowed for anomaly in expected) / len(expected) < 0.9


def test_a_mutant_gives_itself_away_on_spark_too(spark: Any, tmp_path: Path) -> None:
    from conformance.pipeline.analysis import analyze

    logs = logs_of(tmp_path)
    rows = analyze(tables(spark, logs)).anomalies.where("not allowed").collect()
    wanted = {(found.run, found.name) for log in logs for found in check(log) if not found.allowed}
    assert {(row["run"], row["name"]) for row in rows} == wanted
    told = {(row["client"], row["scenario"], row["name"]) for row in rows}
    assert told >= {(mutant, scenario, anomaly) for anomaly, scenario, _, mutant in TELLTALE}
    assert not [row for row in rows if row["client"] == "reference"]


def test_evidence_carries_what_is_known_of_the_run(spark: Any) -> None:
    from conformance.pipeline.analysis import analyze

    known = {
        "client": "rstream",
        "client_version": "1.1",
        "protocol": "rabbitmq-stream",
        "scenario": "RMQS-3.09",
        "requirement": "R7",
        "seed": 42,
    }
    story = h.Story("r", **known)
    story.publish("a", "fail")
    story.deliver("a")
    (row,) = analyze(tables(spark, [story.log()])).anomalies.collect()
    assert {name: row[name] for name in known} == known
    assert (row["name"], row["seqs"]) == ("G1a", [2, 3])


def test_latencies_are_exact(spark: Any) -> None:
    from conformance.pipeline.analysis import analyze
    from conformance.pipeline.measures import QUANTILES
    from fakebrokers.journal import Tap

    story = h.Story("r", client="c", protocol="p")
    for n in range(101):
        story.run.op(1.0, "p", n, "publish", "invoke", key="q", value=f"v{n}")
        story.run.op(1.0 + n / 1000, "p", n, "publish", "ok", key="q", value=f"v{n}")
    story.deliver("v0")
    story.run.op(0.5, "c", None, "deliver", "ok", key="q", value="never sent")
    story.frame(h.Publish((1, 2)), Tap.IN)
    story.tick(0.24)
    story.frame(h.Confirm((2,)), Tap.OUT)
    rows = {row["measure"]: row for row in analyze(tables(spark, [story.log()])).latencies.collect()}
    confirms = dict(zip(QUANTILES, rows["publish-confirm"]["quantiles_ms"], strict=True))
    assert rows["publish-confirm"]["messages"] == 101
    assert [confirms[q] for q in (0.0, 0.5, 0.99, 1.0)] == pytest.approx([0, 50, 99, 100])
    assert (rows["wire-confirm"]["messages"], rows["wire-confirm"]["quantiles_ms"][0]) == (
        1,
        pytest.approx(250),
    )
    assert "publish-deliver" not in rows  # it came before it was sent: no latency


def test_the_matrix_counts_verdicts_and_anomalies(spark: Any) -> None:
    from conformance.pipeline.analysis import analyze

    logs = []
    for run, verdict, contract in [("1", "pass", ""), ("2", "fail", ""), ("3", "fail", "at-least-once")]:
        story = h.Story(run, client="c", scenario="S", verdict=verdict, contract=contract)
        story.publish("a")
        story.deliver("a")
        story.deliver("a")
        logs.append(story.log(ended=run != "3"))
    (row,) = analyze(tables(spark, logs)).matrix.collect()
    assert (row["client"], row["scenario"], row["runs"], row["broken_off"]) == ("c", "S", 3, 1)
    assert row["verdicts"] == {"pass": 1, "fail": 2}
    assert row["anomalies"] == 2


def test_the_harness_is_measured(spark: Any) -> None:
    from conformance.pipeline.analysis import analyze

    story = h.Story("r")
    for value in (1.0, 3.0):
        story.run.metric(story.tick(), "loop_lag_ms", value)
    (row,) = analyze(tables(spark, [story.log()])).harness.collect()
    assert (row["name"], row["samples"], row["worst"], row["mean"]) == ("loop_lag_ms", 2, 3.0, 2.0)


def test_nothing_in_nothing_out(spark: Any) -> None:
    from conformance.pipeline.analysis import analyze

    results = analyze(tables(spark, []))
    assert [getattr(results, name).count() for name in ("anomalies", "latencies", "matrix", "harness")] == [
        0
    ] * 4
