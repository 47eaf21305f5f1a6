"""The faults that only RabbitMQ Stream has, in one line of Python each.

    move_leader("orders", role="publish", nth=10)

See `fakebrokers.faults.build`.
"""

from __future__ import annotations

from typing import Unpack

from fakebrokers.faults.making import FaultArgs, builder
from fakebrokers.faults.nodes import StopNode
from fakebrokers.faults.plan import Fault
from fakebrokers.rabbitmq_stream.faults import DeleteStream, MoveLeader


@builder(DeleteStream)
def delete_stream(stream: str, **fault: Unpack[FaultArgs]) -> Fault:
    """A stream of the virtual host "/" is deleted; whoever uses it gets a MetadataUpdate."""


@builder(MoveLeader)
def move_leader(stream: str, node: int | None = None, **fault: Unpack[FaultArgs]) -> Fault:
    """Another node leads a stream of the virtual host "/"; whoever uses it gets a MetadataUpdate."""


@builder(StopNode)
def stop_node(node: int = 1, **fault: Unpack[FaultArgs]) -> Fault:
    """A broker of the cluster goes down: its connections end."""
