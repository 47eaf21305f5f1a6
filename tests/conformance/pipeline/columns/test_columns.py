"""The checks over columns find what the checkers over rows find."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conformance.pipeline.columns.fileset import FileSet
from conformance.rules.anomalies import check
from conformance.rules.anomalies.anomaly import NAMES
from fakebrokers.journal import Tap
from fakebrokers.journal.reader import RunLog
from tests.conformance.telltale import TELLTALE, logs_of

_path = Path(__file__).parents[2] / "rules" / "anomalies" / "histories.py"
_spec = importlib.util.spec_from_file_location("histories_for_columns", _path)
assert _spec is not None and _spec.loader is not None
h: Any = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = h
_spec.loader.exec_module(h)


def counted(findings: Any) -> Counter[tuple[Any, ...]]:
    return Counter((*found[:5], tuple(found[5]), found[6]) for found in findings.found)


def by_rows(logs: list[RunLog]) -> Counter[tuple[Any, ...]]:
    return Counter(
        (found.name, found.run, found.key, found.value, found.process, found.seqs, found.detail)
        for log in logs
        for found in check(log)
    )


@pytest.mark.parametrize("first", [0, 1000, 2000])
def test_generated_histories_are_judged_alike(judged: Any, first: int) -> None:
    logs = [h.generated(seed, f"run-{seed}") for seed in range(first, first + 1000)]
    expected, found = by_rows(logs), counted(judged(logs))
    assert sorted((found - expected).elements()) == []
    assert sorted((expected - found).elements()) == []
    often = Counter(name for name, *_ in expected.elements())
    assert all(often[name] >= 10 for name in NAMES), f"the generator hardly makes some anomalies: {often}"


@pytest.mark.parametrize("parts", [2, 7])
def test_messages_are_judged_alike_in_parts(files_of: Any, parts: int) -> None:
    from conformance.pipeline.columns import Findings, messages

    logs = [h.generated(seed, f"run-{seed}") for seed in range(1500)] + [slow_reader()]
    whole, together = Findings(), Findings()
    messages.judge(files_of(logs), whole)
    for part in range(parts):
        findings = Findings()
        messages.judge(files_of(logs, (part, parts)), findings)
        assert 0 < len(findings.found) < len(whole.found)
        together.found += findings.found
    assert counted(together) == counted(whole)
    assert ("lost-write", "slow reader") in {(name, run) for name, run, *_ in whole.found}


def slow_reader() -> RunLog:
    """Two messages prove that one is gone, of which the reader gets the second and newest last."""
    story = h.Story("slow reader", contract="exactly-once ordered")
    story.subscribe()
    for number in range(12):
        story.publish(f"v{number}")
    for number in (0, 1, 11):
        story.deliver(f"v{number}")
    return story.log()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "texts", [[], [None], ["", "a", None, "ключ", "a"], ["x" * 9, "x" * 10], [str(n) for n in range(99)]]
)
def test_a_text_is_always_of_the_same_part(texts: list[str | None]) -> None:
    import pyarrow as pa

    from conformance.pipeline.columns.arrays import parts_of

    column = pa.array(texts, pa.string())
    found = parts_of(column, 5).tolist()
    by_text = dict(zip(texts, found, strict=True))
    assert found == [by_text[text] for text in texts] and all(0 <= part < 5 for part in found)
    elsewhere = pa.chunked_array([pa.array(["prefix", *texts, *texts], pa.string()).slice(1), column])
    assert parts_of(elsewhere, 5).tolist() == 3 * found
    if len(texts) == 99:
        assert all(10 <= found.count(part) <= 35 for part in range(5))


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


def test_numbers_at_the_ends_of_their_range_are_judged_alike(judged: Any) -> None:
    logs = [story.log() for story in edge_stories()]
    found = counted(judged(logs))
    assert found == by_rows(logs)
    names = {(run.split()[0], name) for name, run, *_ in found}
    assert names == {
        ("frame", "phantom-confirm"),
        ("across", "phantom-confirm"),
        ("lost", "lost-write"),
        ("lost", "poll-skip"),
        ("back", "nonmonotonic-poll"),
        ("twice", "duplicate"),
    }
    assert found.total() == len(EDGES) * len(names)


def test_numbers_beyond_64_bits_on_the_wire_count_as_text(judged: Any) -> None:
    story = h.Story("beyond", contract="exactly-once ordered")
    story.frame(h.Publish(((1 << 64) - 1, 1 << 64)), Tap.IN)
    story.frame(h.Confirm(((1 << 64) - 1,)), Tap.OUT)
    story.publish("a", wire_key=str((1 << 64) - 1))
    story.publish("b", wire_key=str(1 << 64))
    logs = [story.log()]
    found = counted(judged(logs))
    assert found == by_rows(logs)
    assert [(name, value) for name, _, _, value, *_ in found] == [("phantom-confirm", str(1 << 64))]


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


def test_odd_histories_are_judged_alike(judged: Any) -> None:
    stories = list(odd_stories())
    logs = [story.log() for story, _ in stories]
    found = counted(judged(logs))
    assert found == by_rows(logs)
    assert sorted((run, name) for name, run, *_ in found) == sorted(
        (log.run.run, name) for log, (_, name) in zip(logs, stories, strict=True)
    )


@pytest.mark.full
def test_a_mutant_gives_itself_away_by_columns_too(judged: Any, tmp_path: Path) -> None:
    logs = logs_of(tmp_path)
    found = counted(judged(logs))
    assert found == by_rows(logs)
    clients = {log.run.run: (log.run.client, log.run.scenario) for log in logs}
    reported = {(*clients[run], name) for name, run, *_ in found}
    assert reported >= {(mutant, scenario, anomaly) for anomaly, scenario, _, mutant in TELLTALE}
    bad = {(each.run, each.name) for log in logs for each in check(log) if not each.allowed}
    assert not [run for run, _ in bad if clients[run][0] == "reference"]


def test_messages_in_findings_are_told_as_the_checkers_know_them(files_of: Any, judged: Any) -> None:
    from conformance.pipeline.columns import drill_down
    from conformance.rules.anomalies.history import fates

    logs = [h.generated(seed, f"run-{seed}") for seed in range(300)]
    found = judged(logs).found
    rows = drill_down.messages_in(files_of(logs), found).to_pylist()
    known = {(log.run.run, *key): fate for log in logs for key, fate in fates(log.ops).items()}
    for row in rows:
        fate = known[row["run"], row["key"], row["value"]]
        for name in (*drill_down.COUNTS, *drill_down.SEQS, "acked_offset"):
            assert row[name] == getattr(fate, name), (row, fate)
        ends = (min(fate.offsets), max(fate.offsets)) if fate.offsets else (None, None)
        assert (row["lowest"], row["highest"]) == ends
    named = {
        (run, name, key, value)
        for name, run, key, value, *_ in found
        if name in drill_down._OF_MESSAGES and (run, key, value) in known
    }
    assert {(row["run"], row["anomaly"], row["key"], row["value"]) for row in rows} == named
    assert len(rows) == len(named) > 300


def test_of_a_run_only_the_first_messages_are_told(files_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance.pipeline.columns import drill_down

    monkeypatch.setattr(drill_down, "PER_RUN", 2)
    stories = [h.Story(name) for name in ("a", "b")]
    for story in stories:
        for number in range(5):
            story.publish(f"v{number}")
    logs = [story.log() for story in stories]
    found = [("duplicate", log.run.run, "q", f"v{n}", "", [], "") for log in logs for n in range(5)]
    rows = drill_down.messages_in(files_of(logs), found).to_pylist()
    assert [(row["run"], row["value"]) for row in rows] == [(r, v) for r in "ab" for v in ("v0", "v1")]


def test_latencies_are_exact(judged: Any) -> None:
    story = h.Story("r")
    for n in range(101):
        story.run.op(1.0, "p", n, "publish", "invoke", key="q", value=f"v{n}")
        story.run.op(1.0 + n / 1000, "p", n, "publish", "ok", key="q", value=f"v{n}")
    story.deliver("v0")
    story.run.op(0.5, "c", None, "deliver", "ok", key="q", value="never sent")
    story.frame(h.Publish((1, 2)), Tap.IN)
    story.tick(0.24)
    story.frame(h.Confirm((2,)), Tap.OUT)
    latencies = judged([story.log()]).latencies
    assert set(latencies) == {("publish-confirm", "r"), ("wire-confirm", "r")}  # v0 came before it was sent
    confirms = latencies["publish-confirm", "r"]
    assert confirms.total == 101
    assert confirms.quantiles_ms([0.0, 0.5, 0.99, 1.0]) == pytest.approx([0, 50, 99, 100])
    assert latencies["wire-confirm", "r"].quantiles_ms([0.0]) == [pytest.approx(250)]


def test_no_rows_no_findings(judged: Any) -> None:
    findings = judged([])
    assert (findings.found, findings.latencies) == ([], {})


@pytest.mark.parametrize("damage", ["apart", "back"])
def test_rows_that_are_not_as_sealing_promises_are_refused(files_of: Any, damage: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from fakebrokers.errors import UsageError

    logs = []
    for run in ("a", "b"):
        story = h.Story(run)
        story.publish("v")
        story.publish("w")
        logs.append(story.log())
    files = files_of(logs)
    table = pq.read_table(files.paths["ops"])
    order = [0, 4, 1, 2, 3, 5, 6, 7] if damage == "apart" else [1, 0, 2, 3, 4, 5, 6, 7]
    pq.write_table(table.take(pa.array(order)), files.paths["ops"])
    with pytest.raises(UsageError, match="rows of each run together and in the order of seq"):
        files.check()


def test_faults_of_row_groups_with_other_names(tmp_path: Path) -> None:
    path = tmp_path / "frames.parquet"
    with pq.ParquetWriter(path, pa.schema({"run": pa.string(), "fault": pa.string()})) as file:
        for runs, faults in ((["a", "a"], ["one", ""]), (["b"], ["two,one"])):
            file.write_table(pa.table({"run": runs, "fault": faults}))
    assert FileSet({"frames": str(path)}).faults == {"a": ["one"], "b": ["one", "two"]}
