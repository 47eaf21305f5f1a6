"""Clients in processes of their own."""

from __future__ import annotations

import asyncio
import sys

import pytest

from conformance.clients.adapters.registry import bundled
from conformance.clients.reference.registry import command
from conformance.rules import judge
from conformance.run.inprocess import runner
from conformance.run.specs import Injection, Spec
from conformance.run.trace import TraceRow
from conformance.search.client import by_its_clock
from conformance.search.systematic.children import Child, best_first
from conformance.search.systematic.order import DrawOrder
from conformance.search.systematic.universe import DrawableSpec

PROTOCOL = "rabbitmq-stream"
LOST = Injection("c1", "out", 9, "lost")
CLEAN = runner(PROTOCOL)


PATHS = {"PYTHONPATH": ":".join(path for path in sys.path if path)}


@pytest.fixture
def child() -> Child:
    return Child.of(PROTOCOL, command(PROTOCOL), PATHS, pause_s=0.3)


def test_runs_go_side_by_side_and_the_correct_client_violates_nothing(child: Child) -> None:
    specs = [Spec(PROTOCOL, "publish"), Spec(PROTOCOL, "publish", (LOST,)), Spec(PROTOCOL, "ask")]
    seen = list(child.run_all(specs, 60.0))
    assert all(case.slack_s for case, _ in seen)
    assert {str(case.spec) for case, _ in seen} == {str(spec) for spec in specs}
    assert [findings for _, findings in seen if findings] == []


def test_the_trace_has_what_went_over_the_sockets(child: Child) -> None:
    case = asyncio.run(child.run(Spec(PROTOCOL, "publish", (LOST,))))
    assert case.hits == 1
    assert [one.place[-1] for one in case.facts.written][:3] == [1, 2, 3]
    assert 1 not in [one.place[-1] for one in case.facts.settled][:2]
    assert {reported.word for reported in case.reported} >= {"acked", "unknown"}


def test_a_base_that_takes_too_long_is_brought_to_its_end_and_judged(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that answers nothing is no reason for a run without a verdict."""
    monkeypatch.setattr("conformance.run.inprocess.ENOUGH_S", 0.0)
    case = asyncio.run(child.run(Spec(PROTOCOL, "publish")))
    assert [done.op for done in case.ops if not done.phase] == ["connect"]
    assert [done.op for done in case.ops][-3:] == ["close", "state", "stats"]
    assert not case.harness


def test_an_adapter_that_does_not_start_is_no_finding_about_the_client() -> None:
    case = asyncio.run(
        Child.of(PROTOCOL, [sys.executable, "-c", "raise SystemExit(1)"]).run(Spec(PROTOCOL, "ask"))
    )
    assert [finding.name for finding in judge(case)] == ["harness"]


def test_pzq_over_its_own_sockets_violates_nothing() -> None:
    child = Child.of("pzq", command("pzq"), PATHS, pause_s=0.3)
    case = asyncio.run(child.run(Spec("pzq", "both")))
    assert judge(case) == []
    assert len(case.facts.settled) >= 1
    assert len(case.facts.handed) >= 1
    assert {conn.socket for conn in case.conns.values()} == {"receive", "send", "monitor"}


def test_a_line_stands_where_it_was_written_not_where_it_was_read() -> None:
    case = CLEAN(Spec(PROTOCOL, "ask"))
    rows = [
        TraceRow(10.000, "op", "", "publish"),
        TraceRow(10.020, "in", "c1", b"what the client wrote behind its word"),
        TraceRow(10.021, "event", "", 7),  # written 12 ms before it was read
        TraceRow(10.030, "answer", "", 1),  # read at once
    ]
    case.rows, case.ops, case.events = rows, case.ops[:0], []
    by_its_clock(case, [(rows[2], 5.009), (rows[3], 5.030)])
    assert [row.what for row in case.rows] == ["op", "event", "in", "answer"]
    assert case.rows[1].t == pytest.approx(10.009)


@pytest.mark.full
def test_bases_are_those_that_the_client_has_the_role_and_the_capabilities_for() -> None:
    adapter = "conformance.clients.adapters.rbfly"  # speaks no admin ops, and knows no sub-entries
    client = next((each for each in bundled() if each.name == "rbfly"), None)
    if client is None or not client.runnable:
        pytest.skip(f"missing: {adapter}")
    names = {base.name for base in asyncio.run(Child.of(PROTOCOL, client.command, client.env).bases())}
    assert {"publish", "consume", "cancelled"} <= names
    assert "packed" not in names


def test_each_kind_of_fault_comes_soon_the_best_first() -> None:
    items = [
        DrawableSpec((act, kind, ""), Spec(PROTOCOL, "ask", (Injection("c1", "out", nth, act),)))
        for act in ("field", "late", "rst")
        for kind in ("a", "b", "c")
        for nth in range(1, 4)
    ]
    drawn = [spec.injections[0].act for spec in DrawOrder(best_first(items), by_name=True)]
    assert drawn[:6] == ["rst", "late", "field"] * 2
