"""What happens to a node of a cluster; protocols whose fakes have nodes list it among their effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Action, EffectOnFake

if TYPE_CHECKING:
    from fakebrokers.core.host import Host


class NodeGoesDown(Action, frozen=True):
    """See `StopNode`."""

    node: int

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server, engine = host.server, host.engine
        if self.node <= len(server.nodes):
            engine.journal.state(engine.now, "", "node stopped", f"node {self.node}, at once", fault)
            server.stop_node(self.node)
            engine.until_over(fault, lambda: server.start_node(self.node))


class StopNode(EffectOnFake, frozen=True, tag="stop-node"):
    """A broker of the cluster goes down: its connections end.

    Attributes:
        node: Its number, from 1; nothing happens if there is none.
    """

    needs_broker = True
    node: int = 1

    def action(self) -> Action:
        return NodeGoesDown(self.node)

    def check(self, path: str) -> None:
        if self.node < 1:
            raise PlanError(f"{path}.node", f"expected a node's number from 1, got {self.node}")
