"""The mutants of NATS's client: what they can do as long as nothing unusual happens."""

from __future__ import annotations

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.mutants.registry import Mutant, mutants_of
from conformance.clients.reference.registry import without_sockets
from fakebrokers import NATS
from fakebrokers.core import virtual
from tests.conformance.clients.reference.nats.happy_path import walk

MUTANTS = mutants_of("nats")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_walks_the_happy_path(mutant: Mutant) -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(mutant.adapter), "nats")
        await adapter.start()
        async with NATS(memory=True) as broker:
            await walk(adapter, broker)
        await adapter.kill()

    virtual.run(work())
