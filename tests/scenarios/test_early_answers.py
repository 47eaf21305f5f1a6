"""What comes in one read is handled before anybody else can answer it, as at a real server.

A client that asks who is there and then subscribes to the answer, in one segment, loses nothing with a
real server. So it fails the row that demands the order, and no other.
"""

from __future__ import annotations

import pytest

from conformance.clients.mutants.matrix import run
from conformance.clients.mutants.registry import find_mutant
from conformance.results import Verdict
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario
from tests.scenarios.proofs import in_memory

ORDER = "MOL-1.01"  #: is about it
TCP = "tcp"  #: has no server, and no peers in memory


def rows() -> list[Scenario]:
    found = [item for item in all_scenarios() if item.protocol == "moleculer" and not item.soak]
    return [item for item in found if in_memory(item) and item.variant != TCP]


@pytest.mark.parametrize("item", rows(), ids=lambda item: f"{item.id}-{item.variant}")
def test_a_client_that_subscribes_late_in_one_segment_fails_one_row(item: Scenario) -> None:
    judged = run(item, find_mutant("moleculer", "subscribes-after-discover"))
    assert (judged.verdict is Verdict.FAIL) is (item.id == ORDER), judged.reason
