"""Mutants have one defect, and say which; otherwise they work."""

from __future__ import annotations

import pytest

from conformance.adapter.inprocess import InProcessAdapter
from conformance.mutants.registry import Mutant, find_mutant, mutants_of
from conformance.reference.registry import protocols, without_sockets
from conformance.suite.catalogue import families
from fakebrokers import RabbitMQStream
from fakebrokers.core import virtual
from fakebrokers.errors import UsageError
from tests.conformance.reference.rabbitmq_stream.happy_path import GENTLE, walk

STREAM_MUTANTS = mutants_of("rabbitmq-stream")


@pytest.mark.parametrize("mutant", STREAM_MUTANTS, ids=lambda mutant: mutant.name)
def test_it_walks_the_happy_path(mutant: Mutant) -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(mutant.adapter), mutant.protocol)
        await adapter.start()
        async with RabbitMQStream(memory=True) as broker:
            broker.faults.add(GENTLE)
            await walk(adapter, broker)
        await adapter.kill()

    virtual.run(work())


@pytest.mark.parametrize("protocol", protocols())
def test_it_says_what_it_breaks(protocol: str) -> None:
    known = {code for family in families().values() for code in family.basis}
    for mutant in mutants_of(protocol):
        assert mutant.breaks
        assert set(mutant.breaks) <= known, mutant.name
        assert mutant.title.endswith("."), mutant.name


def test_an_unknown_name_gets_the_close_ones() -> None:
    with pytest.raises(UsageError, match="confirm-by-position"):
        find_mutant("rabbitmq-stream", "confirm-by-positon")
