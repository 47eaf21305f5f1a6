"""Mutants have one defect, and say which; otherwise they work."""

from __future__ import annotations

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.mutants.registry import Mutant, find_mutant, mutant, mutants_of
from conformance.clients.reference.registry import protocols, without_sockets
from conformance.suite.catalogue import families
from fakebrokers import RabbitMQStream
from fakebrokers.core import virtual
from fakebrokers.errors import UsageError
from tests.conformance.clients.reference.rabbitmq_stream.happy_path import GENTLE, walk

STREAM_MUTANTS = mutants_of("rabbitmq-stream")


@pytest.mark.parametrize("client", STREAM_MUTANTS, ids=lambda client: client.name)
def test_it_walks_the_happy_path(client: Mutant) -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(client.adapter), client.protocol)
        await adapter.start()
        async with RabbitMQStream(memory=True) as broker:
            broker.faults.add(GENTLE)
            await walk(adapter, broker)
        await adapter.kill()

    virtual.run(work())


@pytest.mark.parametrize("protocol", protocols())
def test_it_says_what_it_breaks(protocol: str) -> None:
    known = {code for family in families().values() for code in family.basis}
    for one in mutants_of(protocol):
        assert one.breaks
        assert set(one.breaks) <= known, one.name
        assert one.title.endswith("."), one.name


def test_the_tags_tell_defects_apart() -> None:
    for protocol in protocols():
        tags = [one.tag for one in mutants_of(protocol)]
        assert set(tags) == {"data", "life-cycle", "wire", "wording"}
    tagged = {one.name: one.tag for one in STREAM_MUTANTS}
    assert tagged["confirms-on-write"] == "data"
    assert tagged["never-reconnects"] == "life-cycle"
    assert tagged["one-frame-per-read"] == "wire"
    assert tagged["refusals-are-all-alike"] == "wording"


def test_another_tag_is_refused() -> None:
    with pytest.raises(UsageError, match="life-cycle"):
        mutant("tagged-otherwise", tag="lifecycle", breaks=["X1"])(type("Defect", (), {"__doc__": "A."}))  # type: ignore[arg-type]


def test_a_defect_of_the_kit_is_one_for_each_protocol_that_can_have_it() -> None:
    for protocol in ("rabbitmq-stream", "narconi"):
        assert find_mutant(protocol, "reconnects-in-step").protocol == protocol
    with pytest.raises(UsageError):
        find_mutant("pzq", "reconnects-in-step")


def test_an_unknown_name_gets_the_close_ones() -> None:
    with pytest.raises(UsageError, match="confirm-by-position"):
        find_mutant("rabbitmq-stream", "confirm-by-positon")
