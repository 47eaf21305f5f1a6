"""The faults that only RabbitMQ Stream has, in one line of Python each.

    move_leader("orders", role="publish", nth=10)

The types of these functions are in the stub beside this file; see `fakebrokers.faults.build`.
"""

from __future__ import annotations

from fakebrokers.faults.making import builder
from fakebrokers.rabbitmq_stream.faults import DeleteStream, MoveLeader

delete_stream = builder(DeleteStream)
move_leader = builder(MoveLeader)
