"""Each scenario can be passed and failed: by one mutant at every push, by all that are listed in the night.

So every pair of `kills.json` is in one of the lanes. What takes real time, because it needs a process or
sockets, is left to `ci/test --all`.
"""

from __future__ import annotations

import pytest

from conformance.clients.mutants.matrix import GOOD, Mode, run
from conformance.suite.scenario import Scenario
from tests.scenarios.proofs import NOT_IN_MEMORY, in_memory, provable, prove

LISTED = [item for item in provable() if (item.label, item.variant) in NOT_IN_MEMORY]
IN_MEMORY = [item for item in provable() if in_memory(item)]
IN_REAL_TIME = [item for item in provable() if not in_memory(item)]


@pytest.mark.parametrize("item", IN_MEMORY, ids=lambda item: item.label)
def test_it_can_be_passed_and_failed(item: Scenario) -> None:
    prove(item)


@pytest.mark.parametrize("item", LISTED, ids=lambda item: f"{item.label} {item.variant}".rstrip())
def test_what_is_listed_as_not_in_memory_cannot_be_passed_there(item: Scenario) -> None:
    assert run(item, None, Mode.MEMORY).verdict not in GOOD


def test_what_is_listed_as_not_in_memory_is_there() -> None:
    assert {(item.label, item.variant) for item in LISTED} == set(NOT_IN_MEMORY)


@pytest.mark.full
@pytest.mark.parametrize("item", IN_REAL_TIME, ids=lambda item: item.label)
def test_it_can_be_passed_and_failed_in_real_time(item: Scenario) -> None:
    prove(item)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("item", provable(), ids=lambda item: item.label)
def test_every_mutant_that_is_listed_fails_it(item: Scenario) -> None:
    prove(item, whole=True)
