"""Scenarios on a stock client in this process: what is as expected stands, all else is for a process."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.mutants.registry import find_mutant
from conformance.clients.reference.registry import reference
from conformance.known.defects import KnownDefects, Part
from conformance.known.files import load
from conformance.results import ON_VIRTUAL_TIME, Results, Verdict
from conformance.suite.conform import SuiteRequest, conform, conform_all
from conformance.suite.here import HereJudge
from conformance.suite.load import all_scenarios, select
from conformance.suite.scenario import Scenario
from fakebrokers.interrupts import Interrupts
from fakebrokers.journal import RunJournal
from fakebrokers.journal.reader import runs_in

PROTOCOL = "rabbitmq-stream"
Reference: Any = reference(PROTOCOL)
KNOWN = """
version = 2
client = "toy"
client_version = "1"
protocol = "rabbitmq-stream"

[[defect]]
id = "counts"
cause = "it counts confirms"
rows = ["RMQS-3.02"]
"""


def items(*ids: str) -> list[Scenario]:
    return select(all_scenarios(), protocol=PROTOCOL, variant=None, which="full", ids=ids)


def judge(client: type[AdapterBase], known: KnownDefects | None = None) -> HereJudge:
    return HereJudge(client, 0, known or KnownDefects())


def test_what_passes_stands() -> None:
    here = judge(Reference)
    found = list(here.judged(items("RMQS-3.01", "RMQS-3.02", "NET-1.01")))
    assert [one.verdict for one in found] == [Verdict.PASS] * 3
    assert [one.how for one in found] == [ON_VIRTUAL_TIME] * 3
    assert here.left == {}


def test_what_fails_is_left_to_a_process_unless_it_is_known(tmp_path: Path) -> None:
    mutant: Any = find_mutant(PROTOCOL, "confirm-by-position").adapter
    here = judge(mutant)
    failing = [item for item in items("RMQS-3.01", "RMQS-3.02") if not list(here.judged([item]))]
    assert [item.id for item in failing] == ["RMQS-3.02"]
    [why] = here.left.values()
    assert why.startswith("fail on virtual time: ")
    path = tmp_path / "known.toml"
    path.write_text(KNOWN)
    known = judge(mutant, load(path, Part.SUITE))
    assert [one.verdict for one in known.judged(failing)] == [Verdict.FAIL]


def test_a_pass_of_what_is_known_to_fail_is_left_to_a_process(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(KNOWN)
    here = judge(Reference, load(path, Part.SUITE))
    assert list(here.judged(items("RMQS-3.02"))) == []
    assert len(here.left) == 1


class Sleeps(Reference):
    def __init__(self) -> None:
        super().__init__()
        self.ops["publish"] = self.ops["publish_many"] = sleeps


async def sleeps(session: str) -> None:
    time.sleep(0)


def test_what_asks_for_something_real_is_left_to_a_process() -> None:
    here = judge(Sleeps)
    assert list(here.judged(items("RMQS-3.01"))) == []
    [why] = here.left.values()
    assert "a sleep that really waits" in why


def test_what_is_about_the_process_is_left_to_one() -> None:
    [item] = [item for item in items() if item.process and item.protocol == PROTOCOL][:1]
    here = judge(Reference)
    assert list(here.judged([item])) == []
    assert here.left == {item.key: "it is about the process"}


def conformed(here: type[AdapterBase] | None, *ids: str) -> tuple[Any, list[int], str]:
    """The results, how many clients were started besides, and what the console says."""
    started: list[int] = []

    def make() -> InProcessAdapter:
        started.append(1)
        return InProcessAdapter(Reference, PROTOCOL)

    out = io.StringIO()
    order = SuiteRequest(client="toy", protocol=PROTOCOL, make_adapter=make, which="full", ids=ids, here=here)
    return conform(order, Console(file=out, width=200)), started, out.getvalue()


def test_rows_that_stand_start_no_other_client() -> None:
    results, started, said = conformed(Reference, "RMQS-3.01", "RMQS-3.02")
    assert [row.verdict for row in results.results] == [Verdict.PASS] * 2
    assert started == []
    assert "2 of 2 rows on virtual time" in said
    assert results.complete


def test_the_others_are_judged_elsewhere_and_say_what_virtual_time_has_shown() -> None:
    mutant: Any = find_mutant(PROTOCOL, "confirm-by-position").adapter
    results, started, said = conformed(mutant, "RMQS-3.01", "RMQS-3.02")
    rows = {row.id: row for row in results.results}
    assert started
    assert "1 of 2 rows on virtual time" in said
    assert [row.verdict for row in rows.values()] == [Verdict.PASS] * 2  # of the client that was made
    assert (rows["RMQS-3.01"].tags, rows["RMQS-3.02"].tags) == ((), ("real-time",))
    assert rows["RMQS-3.01"].how == ON_VIRTUAL_TIME
    assert rows["RMQS-3.02"].how.startswith("in a process, in real time: fail on virtual time: ")
    assert "    RMQS-3.02: fail on virtual time: " in said


def test_without_a_class_nothing_is_judged_here() -> None:
    results, started, said = conformed(None, "RMQS-3.01")
    assert (len(results.results), bool(started)) == (1, True)
    assert "virtual time" not in said


def test_a_client_of_another_version_keeps_none_from_being_judged_here(
    tmp_path: Path,
) -> None:
    path = tmp_path / "known.toml"
    path.write_text(KNOWN.replace('"1"', '"0.1"'))
    refused: list[str] = []
    found: dict[str, Results] = {}
    orders = [
        SuiteRequest(
            client=name,
            protocol=PROTOCOL,
            make_adapter=lambda: InProcessAdapter(Reference, PROTOCOL),
            which="full",
            ids=("RMQS-3.01", "RMQS-3.02"),
            here=Reference,
            expect=expect,
        )
        for name, expect in (("toy", path), ("other", None))
    ]
    conform_all(
        orders,
        Console(quiet=True),
        Interrupts(),
        parallel=2,
        on_done=lambda order, results: found.update({order.client: results}),
        on_refused=lambda order, error: refused.append(order.client),
    )
    assert refused == ["toy"]
    assert [row.how for row in found["other"].results] == [ON_VIRTUAL_TIME] * 2


def test_the_journal_has_one_run_of_each_row_and_none_of_what_does_not_stand(tmp_path: Path) -> None:
    mutant: Any = find_mutant(PROTOCOL, "confirm-by-position").adapter
    here = judge(mutant)
    opened: list[RunJournal] = []

    def open_run(item: Scenario) -> RunJournal:
        opened.append(RunJournal(tmp_path, item.id, traces=True))
        return opened[-1]

    stands = [one.scenario.id for one in here.judged(items("RMQS-3.01", "RMQS-3.02"), open_run)]
    assert (stands, len(opened)) == (["RMQS-3.01"], 2)
    assert runs_in(tmp_path) == [opened[0].run]
    assert not list(tmp_path.glob(f"{opened[1].run}*"))
