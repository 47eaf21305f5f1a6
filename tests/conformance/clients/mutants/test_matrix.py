"""What counts as a kill, and what does not."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from conformance.clients.mutants import matrix
from conformance.clients.mutants.kills import known_kills
from conformance.clients.mutants.matrix import Matrix, MatrixRow, Mode, candidates, mode_of, prove, run
from conformance.clients.mutants.registry import find_mutant
from conformance.results import Verdict
from conformance.run import stuck
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario


def _scenario(scenario_id: str) -> Scenario:
    return next(one for one in all_scenarios() if one.id == scenario_id)


def test_a_scenario_catches_its_mutants_and_passes_the_reference() -> None:
    scenario = _scenario("RMQS-3.09")
    assert mode_of(scenario) is Mode.MEMORY
    names = ("no-confirm-timeout", "sequence-never-asked")
    row = prove(scenario, [find_mutant("rabbitmq-stream", name) for name in names])
    assert row.reference == Verdict.PASS
    assert row.killed_by == ["no-confirm-timeout"]
    assert "hang" in row.criteria["no-confirm-timeout"]
    assert row.is_proven


def test_a_proxy_needs_sockets_unless_the_scenario_can_do_without() -> None:
    behind_a_proxy = msgspec.structs.replace(_scenario("PZQ-1.01"), server={"proxied": True})
    assert mode_of(behind_a_proxy) is Mode.SOCKETS
    assert mode_of(msgspec.structs.replace(behind_a_proxy, sockets=False)) is Mode.MEMORY


def test_only_mutants_that_break_what_the_scenario_rests_on_are_tried() -> None:
    scenario = _scenario("RMQS-3.09")
    assert all("R7" in one.breaks for one in candidates(scenario))
    assert len(candidates(scenario, everything=True)) > len(candidates(scenario))


def test_a_failure_in_the_preparation_is_no_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = _scenario("RMQS-3.06")

    def judged(one: Scenario, mutant: Any = None, mode: Any = None, **more: Any) -> matrix.Judgement:
        if mutant is None:
            return matrix.Judgement(one, Verdict.PASS)
        return matrix.Judgement(one, Verdict.FAIL, reason="connect works (preparation)", tags=("setup",))

    monkeypatch.setattr(matrix, "run", judged)
    row = prove(scenario, [find_mutant("rabbitmq-stream", "no-confirm-timeout")])
    assert row.killed_by == []
    assert row.survived["no-confirm-timeout"].startswith("fail: setup: ")


def test_nothing_counts_where_the_reference_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "run", lambda one, *_, **__: matrix.Judgement(one, Verdict.FAIL, reason="no"))
    row = prove(_scenario("RMQS-3.06"), [find_mutant("rabbitmq-stream", "no-confirm-timeout")])
    assert (row.reference, row.killed_by) == (Verdict.FAIL, [])
    document = Matrix([row]).document()
    assert document["reference_failures"] == document["unkilled"] == ["RMQS-3.06"]


def test_what_the_sweep_proves_needs_no_scenario_unless_one_is_known() -> None:
    keys = list(known_kills())
    by_scenario = {(key[1], name) for key, names in known_kills().items() for name in names}
    outside = matrix._killed_outside(keys)
    assert ("rabbitmq-stream", "two-outcomes") in outside
    assert not outside & by_scenario, "what a scenario kills has to go on being killed"


def test_the_document_has_the_members_of_the_contract() -> None:
    rows = [
        MatrixRow("RMQS-3.09", "rabbitmq-stream", "", "memory", "pass", killed_by=["no-confirm-timeout"]),
        MatrixRow("NET-1.01", "rabbitmq-stream", "", "memory", "non-strict"),
    ]
    tried = frozenset(("rabbitmq-stream", name) for name in ("no-confirm-timeout", "copies", "known"))
    elsewhere = frozenset({("rabbitmq-stream", "known"), ("narconi", "copies")})
    found = Matrix(rows, tried, elsewhere)
    assert not found.is_proven
    assert found.document() == {
        "scenarios": [
            {
                "id": "RMQS-3.09",
                "protocol": "rabbitmq-stream",
                "variant": "",
                "killed_by": ["no-confirm-timeout"],
            },
            {"id": "NET-1.01", "protocol": "rabbitmq-stream", "variant": "", "killed_by": []},
        ],
        "unkilled": ["NET-1.01"],
        "unkilled_mutants": ["copies"],
        "reference_failures": [],
        "mutants": [{"name": "no-confirm-timeout", "protocol": "rabbitmq-stream", "tag": "life-cycle"}],
    }


def test_a_client_in_an_endless_loop_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def judged(*_: Any, **__: Any) -> None:
        while True:
            pass

    monkeypatch.setattr(matrix, "STUCK_S", 0.2)
    monkeypatch.setattr(stuck, "PATIENCE", 1000)  # of the clock: the machine may have others to serve
    monkeypatch.setattr(matrix, "judge", judged)
    given_up = run(_scenario("RMQS-3.09"))
    assert given_up.verdict is Verdict.HARNESS_ERROR
    assert given_up.reason == "not done after 0.2 s of processor time"


def test_who_waits_for_the_processor_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine says nothing about a client: only processor time counts."""
    scenario = _scenario("RMQS-3.09")

    async def judged(*_: Any, **__: Any) -> matrix.Judgement:
        time.sleep(0.3)  # takes none
        return matrix.Judgement(scenario, Verdict.PASS)

    monkeypatch.setattr(matrix, "STUCK_S", 0.2)
    monkeypatch.setattr(matrix, "judge", judged)
    assert run(scenario).verdict is Verdict.PASS


def test_what_a_mutant_complains_of_is_kept_and_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    judgement = run(_scenario("PZQ-1.25"), find_mutant("pzq", "reasons-are-utf8"))
    assert judgement.kills
    assert "UnicodeDecodeError" in judgement.stderr
    assert capfd.readouterr().err == ""
