"""What a client may do, and pass: rows demand nothing that the protocol's document does not say."""

from __future__ import annotations

import pytest

from conformance.clients.mutants.matrix import GOOD, run
from conformance.clients.mutants.registry import Mutant, mutants_of
from conformance.known.defects import RULES
from conformance.rules import Finding
from conformance.suite import judge
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario
from tests.scenarios.proofs import in_memory


def row(protocol: str, scenario_id: str) -> Scenario:
    return next(item for item in all_scenarios() if (item.protocol, item.id) == (protocol, scenario_id))


def mutant(protocol: str, name: str) -> Mutant:
    return next(one for one in mutants_of(protocol) if one.name == name)


@pytest.mark.parametrize(
    ("protocol", "scenario_id", "name"),
    [
        pytest.param("narconi", "NET-1.09", "overdue-confirm-awaited", id="keeps-a-slow-connection"),
        pytest.param("moleculer", "MOL-1.13", "deaf-to-ping-for-all", id="misses-a-topic"),
    ],
)
def test_a_client_passes_that_does_what_it_may(protocol: str, scenario_id: str, name: str) -> None:
    """What is wrong with these clients is no matter of the row."""
    found = run(row(protocol, scenario_id), mutant(protocol, name), invariants=True)
    assert found.verdict in GOOD, found.reason


ALLOWING = [item for item in all_scenarios() if item.allows]
#: One protocol of each.
ONCE = {item.id: item for item in reversed(ALLOWING) if in_memory(item)}


@pytest.mark.parametrize("item", ALLOWING, ids=lambda item: item.label)
def test_what_a_row_allows_is_a_rule(item: Scenario) -> None:
    assert set(item.allows) <= RULES


@pytest.mark.parametrize("item", ONCE.values(), ids=lambda item: item.label)
def test_a_client_passes_that_does_what_the_row_allows(
    item: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And whatever else it does is told apart from that."""
    other = next(name for name in sorted(RULES) if name not in item.allows)
    found = [Finding(name, "it did") for name in (*item.allows, other)]
    monkeypatch.setattr(judge, "findings", lambda case: found)
    judged = run(item, invariants=True)
    assert judged.verdict in GOOD, judged.reason
    assert [each.name for each in judged.broken] == [other]
