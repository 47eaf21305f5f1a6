"""Proofs of the BMQ scenarios that take no real time."""

from __future__ import annotations

import pytest

from conformance.suite.scenario import Scenario
from tests.scenarios.proofs import in_memory, provable, prove

ITEMS = [item for item in provable("BMQ") if in_memory(item)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.label)
def test_it_can_be_passed_and_failed(item: Scenario) -> None:
    prove(item)
