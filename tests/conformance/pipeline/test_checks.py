"""The checks on Spark find what the checkers in process find."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.checkers import check
from conformance.checkers.anomaly import NAMES
from fakebrokers.journal import Tap
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


@pytest.fixture
def tables(spark: Any, tmp_path: Path) -> Callable[[list[RunLog]], Any]:
    """The tables of runs, by way of Parquet."""
    import pyarrow.parquet as pq

    from conformance.pipeline.schema import load
    from fakebrokers.journal.seal import arrow_table

    def made(logs: list[RunLog]) -> Any:
        rows: dict[str, list[Any]] = {
            "runs": [log.run for log in logs],
            "frames": [row for log in logs for row in log.frames],
            "ops": [row for log in logs for row in log.ops],
            "metrics": [row for log in logs for row in log.metrics],
        }
        files = {}
        for table, part in rows.items():
            path = tmp_path / f"{table}.parquet"
            pq.write_table(arrow_table(table, [msgspec.structs.astuple(row) for row in part]), path)
            files[table] = [str(path)]
        return load(spark, files)

    return made


FIELDS = ("run", "name", "key", "value", "process", "seqs", "allowed", "detail")


def fields_of(rows: list[Any]) -> Counter[tuple[Any, ...]]:
    """What Spark found, as the checkers in process have it."""
    return Counter(tuple(tuple(row[f]) if f == "seqs" else row[f] for f in FIELDS) for row in rows)


@pytest.fixture(params=["1", "3"])
def partitions(spark: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """All rows in one place, as in small journals, and spread out, as in large ones."""
    setting = "spark.sql.shuffle.partitions"
    before = spark.conf.get(setting)
    spark.conf.set(setting, request.param)
    yield
    spark.conf.set(setting, before)


@pytest.mark.usefixtures("partitions")
def test_generated_histories_are_judged_alike(tables: Any) -> None:
    from conformance.pipeline.analysis import analyze

    logs = [h.generated(seed, f"run-{seed}") for seed in range(400)]
    expected = [anomaly for log in logs for anomaly in check(log)]
    rows = analyze(tables(logs)).anomalies.collect()
    found = fields_of(rows)
    wanted = Counter(tuple(getattr(anomaly, f) for f in FIELDS) for anomaly in expected)
    assert sorted((found - wanted).elements()) == []
    assert sorted((wanted - found).elements()) == []
    often = Counter(anomaly.name for anomaly in expected)
    assert all(often[name] >= 10 for name in NAMES), f"the generator hardly makes some anomalies: {often}"
    assert 0.05 < sum(anomaly.allowed for anomaly in expected) / len(expected) < 0.9


EDGES = [(1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1]


def edge_stories() -> Iterator[Any]:
    """What was found wrong with numbers near the ends of 63 and 64 bits, a run for each."""
    contract = "exactly-once ordered"
    for number in EDGES:
        story = h.Story(f"frame {number}", contract=contract)
        story.frame(h.Publish((number,)), Tap.IN)
        story.publish("a", wire_key=str(number))
        yield story
        story = h.Story(f"across {number}", contract=contract)
        story.frame(h.Publish((number - 1, number)), Tap.IN)
        story.frame(h.Confirm((number - 1, number + 5)), Tap.OUT)
        story.publish("a", wire_key=str(number - 1))
        story.publish("b", wire_key=str(number))
        yield story
        story = h.Story(f"read {number}", contract=contract)
        story.deliver("x", number)
        story.publish("a", offset=3)
        yield story
        story = h.Story(f"lost {number}", contract=contract)
        story.deliver("x", number - 2)
        story.deliver("y", number)
        story.publish("a", offset=number - 1)
        yield story
        story = h.Story(f"back {number}", contract=contract)
        for offset in (number - 1, number, number - 1):
            story.deliver(f"v{offset}", offset)
        yield story
        story = h.Story(f"twice {number}", contract=contract)
        for offset in (number - 1, number):
            story.subscribe()
            story.deliver("a", offset)
        yield story
        story = h.Story(f"does not fit {number}", contract=contract)
        for offset in (-1, 1 << 64, number):
            story.deliver("a", offset)
        yield story


def test_numbers_at_the_ends_of_their_range_are_judged_alike(
    spark: Any, tables: Callable[[list[RunLog]], Any]
) -> None:
    from conformance.pipeline.analysis import analyze

    logs = [story.log() for story in edge_stories()]
    found = fields_of(analyze(tables(logs)).anomalies.collect())
    assert found == Counter(tuple(getattr(each, f) for f in FIELDS) for log in logs for each in check(log))
    names = {(run.split()[0], name) for run, name, *_ in found}
    assert names == {
        ("frame", "phantom-confirm"),
        ("across", "phantom-confirm"),
        ("lost", "lost-write"),
        ("lost", "poll-skip"),
        ("back", "nonmonotonic-poll"),
        ("twice", "duplicate"),
    }
    assert found.total() == len(EDGES) * len(names)


def odd_stories() -> Iterator[tuple[Any, str]]:
    """Histories with odd texts, clocks and places, and what is wrong with each."""
    contract = "exactly-once ordered"
    for name, key, value in (
        ("unicode", "ключ/\t\n'\"\\", "日本\0💥"),
        ("half a surrogate", "q", "\ud800"),
        ("no key", None, "a"),
        ("blank", "", ""),
    ):
        story = h.Story(name, contract=contract)
        story.publish(value, key=key)
        for offset in (0, 1):
            story.subscribe(key=key)
            story.deliver(value, offset, key=key)
        yield story, "duplicate"
    story = h.Story("the clock goes back", contract=contract)
    story.subscribe()
    story.publish("a")
    story.now -= 5
    story.publish("b")
    story.deliver("b", 1)
    yield story, "lost-write"
    story = h.Story("two publishers", contract=contract)
    for connection in ("c1", "c2"):
        story.frame(h.Publish((0,)), Tap.IN, connection)
        story.frame(h.Confirm((0,)), Tap.OUT, "c1")
    story.publish("a", wire_key="0")
    story.publish("b", wire_key="0", by="p2")
    yield story, "phantom-confirm"
    story = h.Story("a refusal among confirms", contract=contract)
    story.frame(h.Publish(("g1", "g2")), Tap.IN)
    story.frame(h.Answers(("g1", "g2"), (0, 5), (0, 0)), Tap.OUT)
    story.publish("a", wire_key="g1")
    story.publish("b", wire_key="g2")
    yield story, "phantom-confirm"


def test_odd_histories_are_judged_alike(tables: Callable[[list[RunLog]], Any]) -> None:
    from conformance.pipeline.analysis import analyze

    stories = list(odd_stories())
    logs = [story.log() for story, _ in stories]
    found = fields_of(analyze(tables(logs)).anomalies.collect())
    assert found == Counter(tuple(getattr(each, f) for f in FIELDS) for log in logs for each in check(log))
    assert sorted((run, name) for run, name, *_ in found) == sorted(
        (log.run.run, name) for log, (_, name) in zip(logs, stories, strict=True)
    )


def test_a_failed_analysis_leaves_no_older_summary(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from conformance.pipeline import analysis

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory")

    (tmp_path / "analysis.json").write_text("of another day")
    monkeypatch.setattr(analysis, "find", fails)
    with pytest.raises(RuntimeError, match="out of memory"):
        analysis.run_analysis(spark, {"runs": [], "frames": [], "ops": [], "metrics": []}, tmp_path)
    assert not (tmp_path / "analysis.json").exists()


def test_a_mutant_gives_itself_away_on_spark_too(tables: Any, tmp_path: Path) -> None:
    from conformance.pipeline.analysis import analyze

    logs = logs_of(tmp_path)
    rows = analyze(tables(logs)).anomalies.where("not allowed").collect()
    wanted = {(found.run, found.name) for log in logs for found in check(log) if not found.allowed}
    assert {(row["run"], row["name"]) for row in rows} == wanted
    told = {(row["client"], row["scenario"], row["name"]) for row in rows}
    assert told >= {(mutant, scenario, anomaly) for anomaly, scenario, _, mutant in TELLTALE}
    assert not [row for row in rows if row["client"] == "reference"]


def test_evidence_carries_what_is_known_of_the_run(tables: Any) -> None:
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
    (row,) = analyze(tables([story.log()])).anomalies.collect()
    assert {name: row[name] for name in known} == known
    assert (row["name"], row["seqs"]) == ("G1a", [2, 3])


def test_latencies_are_exact(tables: Any) -> None:
    from conformance.pipeline.analysis import analyze
    from conformance.pipeline.measures import QUANTILES

    story = h.Story("r", client="c", protocol="p")
    for n in range(101):
        story.run.op(1.0, "p", n, "publish", "invoke", key="q", value=f"v{n}")
        story.run.op(1.0 + n / 1000, "p", n, "publish", "ok", key="q", value=f"v{n}")
    story.deliver("v0")
    story.run.op(0.5, "c", None, "deliver", "ok", key="q", value="never sent")
    story.frame(h.Publish((1, 2)), Tap.IN)
    story.tick(0.24)
    story.frame(h.Confirm((2,)), Tap.OUT)
    rows = {row["measure"]: row for row in analyze(tables([story.log()])).latencies.collect()}
    confirms = dict(zip(QUANTILES, rows["publish-confirm"]["quantiles_ms"], strict=True))
    assert rows["publish-confirm"]["messages"] == 101
    assert [confirms[q] for q in (0.0, 0.5, 0.99, 1.0)] == pytest.approx([0, 50, 99, 100])
    assert (rows["wire-confirm"]["messages"], rows["wire-confirm"]["quantiles_ms"][0]) == (
        1,
        pytest.approx(250),
    )
    assert "publish-deliver" not in rows  # it came before it was sent: no latency


def test_the_matrix_counts_verdicts_and_anomalies(tables: Any) -> None:
    from conformance.pipeline.analysis import analyze

    logs = []
    for run, verdict, contract in [("1", "pass", ""), ("2", "fail", ""), ("3", "fail", "at-least-once")]:
        story = h.Story(run, client="c", scenario="S", verdict=verdict, contract=contract)
        story.publish("a")
        story.deliver("a")
        story.deliver("a")
        logs.append(story.log(ended=run != "3"))
    (row,) = analyze(tables(logs)).matrix.collect()
    assert (row["client"], row["scenario"], row["runs"], row["broken_off"]) == ("c", "S", 3, 1)
    assert row["verdicts"] == {"pass": 1, "fail": 2}
    assert row["anomalies"] == 2


def test_the_harness_is_measured(tables: Any) -> None:
    from conformance.pipeline.analysis import analyze

    story = h.Story("r")
    for value in (1.0, 3.0):
        story.run.metric(story.tick(), "loop_lag_ms", value)
    (row,) = analyze(tables([story.log()])).harness.collect()
    assert (row["name"], row["samples"], row["worst"], row["mean"]) == ("loop_lag_ms", 2, 3.0, 2.0)


def test_nothing_in_nothing_out(tables: Any) -> None:
    from conformance.pipeline.analysis import analyze

    results = analyze(tables([]))
    assert [getattr(results, name).count() for name in ("anomalies", "latencies", "matrix", "harness")] == [
        0
    ] * 4
