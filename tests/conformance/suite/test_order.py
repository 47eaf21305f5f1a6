"""Scenarios do not lean on each other: their order and their neighbours change no verdict."""

from __future__ import annotations

import random

import pytest

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.mutants.matrix import GOOD, Mode, mode_of
from conformance.clients.reference.registry import reference, without_sockets
from conformance.suite.brokers import fake_for
from conformance.suite.load import all_scenarios
from conformance.suite.pool import AdapterPool
from conformance.suite.runner import Runner
from conformance.suite.scenario import Scenario
from fakebrokers.core import virtual

PROTOCOL = "rabbitmq-stream"
SECTIONS = tuple(f"RMQS-{number}" for number in range(1, 7))


def scenarios() -> list[Scenario]:
    items = [s for s in all_scenarios() if s.protocol == PROTOCOL and s.requirement.section in SECTIONS]
    return [s for s in items if mode_of(s) is Mode.MEMORY and not s.soak]


def warm_client() -> Adapter:
    return InProcessAdapter(without_sockets(reference(PROTOCOL)), PROTOCOL)


def verdicts(seed: int, parallel: int) -> dict[str, str]:
    """All of them in a random order, on clients that go from one to the next."""
    items = scenarios()
    random.Random(seed).shuffle(items)
    found = virtual.run(Runner(AdapterPool(warm_client), fake_for(memory=True), parallel=parallel).run(items))
    return {judgement.scenario.id: str(judgement.verdict) for judgement in found}


@pytest.mark.full
def test_two_random_orders_give_the_same_verdicts() -> None:
    one_by_one, together = verdicts(1, 1), verdicts(2, 6)
    assert one_by_one == together
    assert len(one_by_one) >= 100 and set(one_by_one.values()) <= {str(good) for good in GOOD}
