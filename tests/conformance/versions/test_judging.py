"""What a scoreboard judges, and what it keeps: what is stale, and again what differs between two versions."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.mutants.registry import find_mutant
from conformance.known.defects import Defect, KnownDefects, KnownRow
from conformance.results import Results, RowResult, Verdict
from conformance.suite.load import all_scenarios, select
from conformance.suite.scenario import Scenario
from conformance.versions.judging import LOOKS, Ask, Judging, OnDone, side_by_side
from conformance.versions.keep import KeptVersion, Shelf, stale
from fakebrokers.errors import FakeBrokerError, UsageError
from fakebrokers.interrupts import Interrupts

ROWS = select(all_scenarios(), protocol="rabbitmq-stream", ids=("RMQS-1.01", "RMQS-4.22", "RMQS-5.11"))
PASS, FAIL, UNSURE = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE


class Registry:
    """Has every version but 0.1.0."""

    name = "rstream"
    protocols = ("rabbitmq-stream",)

    def versions(self) -> list[str]:
        raise NotImplementedError

    def command(self, version: str) -> list[str]:
        if version == "0.1.0":
            raise UsageError("pip cannot install it")
        return [version]


class Bench:
    """Says the verdicts of each version in turn, the last of a row again and again; keeps what was asked."""

    def __init__(self, place: Path, **verdicts: Sequence[Sequence[Verdict]]) -> None:
        self.shelf = Shelf(place, "rstream", "rabbitmq-stream")
        self.rows = list(ROWS)
        self.refusal: FakeBrokerError | None = None
        self.asked: list[dict[str, list[str]]] = []
        self.said: list[str] = []
        self._verdicts = verdicts
        self._turns: dict[tuple[str, str], int] = {}

    def judged(self, *versions: str) -> dict[str, KeptVersion]:
        Judging(self.shelf, Registry(), self.rows, self._judge, self.said.append).of(versions)  # type: ignore[arg-type]
        return {each: self.shelf.load(each) for each in versions}

    def _judge(self, asks: Sequence[Ask], on_done: OnDone) -> None:
        self.asked.append({ask.version: [row.id for row in ask.rows] for ask in asks})
        for ask in asks:
            rows = tuple(self._result(ask.version, row) for row in ask.rows)
            results = Results("rstream", ask.version, "1", 0, "2026-01-01T00:00:00Z", 1.0, rows)
            on_done(ask.version, self.refusal or results)

    def _result(self, version: str, item: Scenario) -> RowResult:
        at = [row.id for row in ROWS].index(item.id)
        turns = self._verdicts["v" + version.replace(".", "")][at]
        turn = self._turns.get((version, item.id), 0)
        self._turns[version, item.id] = turn + 1
        verdict = turns[min(turn, len(turns) - 1)]
        level = item.requirement.level
        return RowResult(item.id, item.protocol, item.variant, level, verdict, revision=item.revision)


ALL = [row.id for row in ROWS]


def test_only_rows_that_have_changed_are_judged_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, v111=[[PASS, FAIL], [FAIL], [UNSURE, PASS]])
    first = bench.judged("1.1.1")["1.1.1"]
    assert bench.asked == [{"1.1.1": ALL}]
    assert stale(first, ROWS) == [ROWS[2]], "what could not be judged is tried again"
    bench.rows = [msgspec.structs.replace(ROWS[0], revision=99), ROWS[1]]
    second = bench.judged("1.1.1")["1.1.1"].of(bench.rows)
    assert bench.asked[1:] == [{"1.1.1": ["RMQS-1.01"]}]
    assert [(row.id, row.verdict) for row in second.rows] == [("RMQS-1.01", FAIL), ("RMQS-4.22", FAIL)]


def test_versions_are_judged_together_and_one_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path, v101=[[PASS]] * 3, v111=[[PASS]] * 3)
    kept = bench.judged("0.1.0", "1.0.1", "1.1.1")
    assert bench.asked == [{"1.0.1": ALL, "1.1.1": ALL}]
    assert (kept["0.1.0"].refused, kept["0.1.0"].rows) == ("pip cannot install it", ())
    assert bench.said == [
        "0.1.0: making it ready",
        "0.1.0: not judged: pip cannot install it",
        "1.0.1: making it ready",
        "1.1.1: making it ready",
        "1.0.1: 3 rows: 3 pass, 0 fail, 0 neither",
        "1.1.1: 3 rows: 3 pass, 0 fail, 0 neither",
    ]
    bench.judged("0.1.0", "1.0.1", "1.1.1")
    assert len(bench.asked) == 1, "nothing has changed of those that could be judged"


def test_a_version_that_cannot_be_driven_is_named_and_tried_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, v111=[[PASS]] * 3)
    bench.refusal = AdapterFailed("no hello\nTraceback\nImportError: no 'x'")
    kept = bench.judged("1.1.1")["1.1.1"]
    assert (kept.rows, kept.refused) == ((), "no hello: ImportError: no 'x'")
    bench.refusal = None
    kept = bench.judged("1.1.1")["1.1.1"]
    assert (len(kept.rows), kept.refused) == (3, "")


def test_verdicts_stay_where_a_later_run_cannot_have_the_version(tmp_path: Path) -> None:
    bench = Bench(tmp_path, v111=[[PASS]] * 3)
    bench.rows = ROWS[:2]
    before = bench.judged("1.1.1")["1.1.1"]
    bench.refusal, bench.rows = AdapterFailed("no hello"), list(ROWS)
    assert bench.judged("1.1.1")["1.1.1"] == before


def test_what_seems_to_have_changed_is_looked_at_again(tmp_path: Path) -> None:
    steady, unsteady = [PASS], [FAIL, FAIL, PASS]
    bench = Bench(tmp_path, v101=[[FAIL], unsteady, [PASS]], v111=[[PASS], steady, [PASS]])
    kept = bench.judged("1.0.1", "1.1.1")
    changed = ["RMQS-1.01", "RMQS-4.22"]
    assert bench.asked[1:] == [{"1.0.1": changed, "1.1.1": changed}] * 2
    assert [(row.id, row.looks, row.fails) for row in kept["1.0.1"].rows] == [
        ("RMQS-1.01", LOOKS, True),
        ("RMQS-4.22", LOOKS, False),
        ("RMQS-5.11", 1, False),
    ]
    assert not kept["1.0.1"].by_key[ROWS[1].key].passes, "it is not steady"
    assert "1.0.1: RMQS-4.22 is not steady" in bench.said
    bench.judged("1.0.1", "1.1.1")
    assert len(bench.asked) == 3, "often enough"


def test_a_look_that_shows_nothing_counts_for_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, v101=[[FAIL]] + [[PASS]] * 2, v111=[[PASS, UNSURE]] + [[PASS]] * 2)
    row = bench.judged("1.0.1", "1.1.1")["1.1.1"].by_key[ROWS[0].key]
    assert (row.passes, row.looks) == (True, 1)


def test_the_newest_are_kept_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    bench = Bench(tmp_path, **{f"v1{minor}0": [[PASS]] * 3 for minor in (2, 9, 10)})
    bench.judged("1.2.0", "1.9.0", "1.10.0")
    assert bench.shelf.versions() == ["1.2.0", "1.9.0", "1.10.0"]


def test_a_failure_that_is_foreseen_needs_no_second_opinion(tmp_path: Path) -> None:
    log = tmp_path / "started"
    broken = shlex.join(find_mutant("rabbitmq-stream", "handshake-repeats-its-id").command)
    command = ["sh", "-c", f"echo started >>{log}; exec {broken}"]
    ask = Ask("1.1.1", command, select(all_scenarios(), protocol="rabbitmq-stream", ids=("RMQS-1.01",)))

    def judged(foreseen: KnownDefects) -> tuple[RowResult, int]:
        found: list[Results | FakeBrokerError] = []
        log.write_text("")
        judge = side_by_side("a", "rabbitmq-stream", Console(quiet=True), Interrupts(), 1, foreseen)
        judge([ask], lambda _, results: found.append(results))
        (results,) = found
        assert isinstance(results, Results)
        return results.results[0], log.read_text().count("started")

    row, started = judged(KnownDefects())
    assert (row.verdict, started > 1) == (FAIL, True), "a second process has to agree"
    known = KnownRow(defect=Defect(id="a", cause="a cause"), protocol=row.protocol, id=row.id)
    again, started = judged(KnownDefects(client="another", client_version="1.0.0", rows=(known,)))
    assert (again.verdict, again.criterion, again.tags, started) == (FAIL, row.criterion, row.tags, 1)


@pytest.mark.parametrize("which", ["smoke", "gate"])
def test_exactly_the_rows_that_are_asked_for_are_run(which: str) -> None:
    from conformance.suite.conform import SuiteRequest, _Run

    rows = select(all_scenarios(), protocol="moleculer", which=which)
    order = SuiteRequest(
        client="a client", protocol="moleculer", make_adapter=lambda: pytest.fail("started"), rows=tuple(rows)
    )
    assert _Run(order).chosen == rows
