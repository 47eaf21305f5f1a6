"""Clients in processes of their own."""

from __future__ import annotations

import asyncio
import sys

import pytest

from conformance.invariants import Finding, judge
from conformance.reference.registry import command
from conformance.sweep import children
from conformance.sweep.case import Case
from conformance.sweep.children import Child
from conformance.sweep.specs import Bend, Spec

PROTOCOL = "rabbitmq-stream"
LOST = Bend("c1", "out", 9, "lost")


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Child:
    monkeypatch.setattr(children, "PAUSE_S", 0.3)
    return Child.of(PROTOCOL, command(PROTOCOL), {"PYTHONPATH": ":".join(path for path in sys.path if path)})


def test_runs_go_side_by_side_and_the_correct_client_violates_nothing(child: Child) -> None:
    seen: list[tuple[str, list[Finding]]] = []

    def take(case: Case, findings: list[Finding]) -> list[Finding]:
        assert case.slack_s
        seen.append((str(case.spec), findings))
        return findings

    specs = [Spec(PROTOCOL, "publish"), Spec(PROTOCOL, "publish", (LOST,)), Spec(PROTOCOL, "ask")]
    asyncio.run(child.run_all(iter(specs), 60.0, take))
    assert {spec for spec, _ in seen} == {str(spec) for spec in specs}
    assert [findings for _, findings in seen if findings] == []


def test_the_tape_has_what_went_over_the_sockets(child: Child) -> None:
    case = asyncio.run(child.run(Spec(PROTOCOL, "publish", (LOST,))))
    assert case.hits == 1
    assert [one.place[-1] for one in case.facts.written][:3] == [1, 2, 3]
    assert 1 not in [one.place[-1] for one in case.facts.settled][:2]
    assert {told.word for told in case.told} >= {"acked", "unknown"}


def test_an_adapter_that_does_not_start_is_no_finding_about_the_client() -> None:
    case = asyncio.run(
        Child.of(PROTOCOL, [sys.executable, "-c", "raise SystemExit(1)"]).run(Spec(PROTOCOL, "ask"))
    )
    assert [finding.name for finding in judge(case)] == ["harness"]
