"""Faults that exist only here: what an operator, or the end of a node, does to a stream.

    broker.faults.add(fault(DeleteStream(stream="orders"), role="confirm", nth=3))
    broker.faults.add(fault(MoveLeader(stream="orders", node=2), role="publish", nth=10))

Both are legal: a client has to go on (docs/protocols/rabbitmq-stream.md, 9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Action, EffectOnFake, Realism
from fakebrokers.faults.nodes import StopNode

if TYPE_CHECKING:
    from fakebrokers.core.host import Host
    from fakebrokers.rabbitmq_stream.server import RabbitMQStream


class ChangeLeader(Action, frozen=True):
    """Another node leads the stream; see `MoveLeader`."""

    stream: str
    node: int | None

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: RabbitMQStream = host.server
        stream = server.broker.streams.get(("/", self.stream))
        if stream is not None:
            led, nodes = stream.membership.leader, server.nodes
            before = None if led is None else nodes.index(led) + 1
            server.journal.state(host.engine.now, "", "leader moved", self.stream, fault)
            server.move_leader(self.stream, self.node)
            host.engine.until_over(fault, lambda: self._move_back(server, before))

    def _move_back(self, server: RabbitMQStream, node: int | None) -> None:
        if ("/", self.stream) in server.broker.streams:
            server.move_leader(self.stream, node)


class RemoveStream(Action, frozen=True):
    """The stream is deleted; see `DeleteStream`."""

    stream: str

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: RabbitMQStream = host.server
        if ("/", self.stream) in server.broker.streams:
            server.journal.state(host.engine.now, "", "stream deleted", self.stream, fault)
            server.delete_stream(self.stream)


class MoveLeader(EffectOnFake, frozen=True, tag="move-leader"):
    """Another node leads a stream of the virtual host "/"; whoever uses it gets a MetadataUpdate.

    Attributes:
        stream: Its name; nothing happens if there is none.
        node: The node's number, from 1; None: nobody leads.
    """

    needs_broker = True
    realism = Realism.LEGAL
    stream: str
    node: int | None = None

    def action(self) -> Action:
        return ChangeLeader(self.stream, self.node)

    def check(self, path: str) -> None:
        if self.node is not None and self.node < 1:
            raise PlanError(f"{path}.node", f"expected a node's number from 1, got {self.node}")


class DeleteStream(EffectOnFake, frozen=True, tag="delete-stream"):
    """A stream of the virtual host "/" is deleted; whoever uses it gets a MetadataUpdate.

    Attributes:
        stream: Its name; nothing happens if there is none.
    """

    needs_broker = True
    realism = Realism.LEGAL
    stream: str

    def action(self) -> Action:
        return RemoveStream(self.stream)


EFFECTS = (MoveLeader, DeleteStream, StopNode)
