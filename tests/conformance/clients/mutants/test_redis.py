"""The mutants of Redis's client: what they can do as long as nothing unusual happens."""

from __future__ import annotations

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.mutants.registry import Mutant, mutants_of
from conformance.clients.reference.registry import without_sockets
from fakebrokers import Redis
from fakebrokers.core import virtual
from tests.conformance.clients.reference.redis.happy_path import walk

MUTANTS = mutants_of("redis")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_walks_the_happy_path(mutant: Mutant) -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(mutant.adapter), "redis")
        await adapter.start()
        async with Redis(memory=True) as broker:
            await walk(adapter, broker)
        await adapter.kill()

    virtual.run(work())
