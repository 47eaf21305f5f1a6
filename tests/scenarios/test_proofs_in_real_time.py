"""Proofs of the scenarios that need processes, sockets or the whole machine."""

from __future__ import annotations

import pytest

from conformance.suite.scenario import Scenario
from tests.scenarios.proofs import in_memory, provable, prove

ITEMS = [item for item in provable("RMQS", "NET", "PZQ", "NARC", "BMQ", "MOL") if not in_memory(item)]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    "item",
    [pytest.param(each, id=each.label, marks=[] if each.alone else pytest.mark.waits) for each in ITEMS],
)
def test_it_can_be_passed_and_failed(item: Scenario) -> None:
    prove(item)
