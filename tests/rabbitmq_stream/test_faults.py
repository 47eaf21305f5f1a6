"""Faults that exist only here: what an operator does to a stream, at a frame's position."""

from __future__ import annotations

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.core import virtual
from fakebrokers.core.frames import Frame
from fakebrokers.errors import PlanError
from fakebrokers.faults import fault, load_plan
from fakebrokers.rabbitmq_stream.faults import DeleteStream, MoveLeader
from fakebrokers.rabbitmq_stream.frames import DeclarePublisher, MetadataUpdate, PublishConfirm
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.rabbitmq_stream.test_say_close import Client


async def publishing(broker: RabbitMQStream) -> list[Frame]:
    """Declare a publisher, publish three times; what came since."""
    broker.create_stream("orders")
    client = Client(broker)
    await client.log_in()
    await client.send(DeclarePublisher(9, 1, "", "orders"))
    await client.send(*[publish(1, [(number, b"x")]) for number in range(3)])
    return client.frames


def test_a_stream_is_deleted_at_the_second_confirm() -> None:
    async def talk() -> None:
        with RabbitMQStream(memory=True) as broker:
            broker.faults.add(fault(DeleteStream(stream="orders"), role="confirm", nth=2, name="gone"))
            came = await publishing(broker)
            kinds = [type(frame) for frame in came]
            assert kinds.index(MetadataUpdate) > kinds.index(PublishConfirm)
            assert broker.streams == []
            assert [r.fault for r in broker.journal.select(kind="stream deleted")] == ["gone"]

    virtual.run(talk())


def test_another_node_leads_a_stream() -> None:
    async def talk() -> None:
        with RabbitMQStream(memory=True, nodes=2) as broker:
            broker.faults.add(fault(MoveLeader(stream="orders", node=2), role="publish", nth=3))
            came = await publishing(broker)
            assert [frame.stream for frame in came if isinstance(frame, MetadataUpdate)] == ["orders"]
            assert broker.stream_named("orders").membership.leader is broker.nodes[1]

    virtual.run(talk())


def test_a_stream_that_is_not_there_changes_nothing() -> None:
    async def talk() -> None:
        with RabbitMQStream(memory=True) as broker:
            broker.faults.add(fault(DeleteStream(stream="other"), role="confirm"))
            came = await publishing(broker)
            assert sum(isinstance(frame, PublishConfirm) for frame in came) == 3

    virtual.run(talk())


def plan_with_node(node: int) -> dict[str, object]:
    return {"faults": [{"effect": {"type": "move-leader", "stream": "s", "node": node}}]}


def test_as_plain_values() -> None:
    plan = load_plan(plan_with_node(2), "rabbitmq-stream")
    assert plan.faults[0].effects == (MoveLeader(stream="s", node=2),)
    with pytest.raises(PlanError, match=r"faults\[0\]\.effect\.node: expected a node's number from 1, got 0"):
        load_plan(plan_with_node(0), "rabbitmq-stream")
