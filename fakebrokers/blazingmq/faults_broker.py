"""Effects on the broker as a whole: what operators and their accidents do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Action, Effect, Passage, Realism

if TYPE_CHECKING:
    from fakebrokers.blazingmq.server import BlazingMQ
    from fakebrokers.core.host import Host


class Redelivery(Action, frozen=True):
    """See `RedeliverNow`."""

    uri: str

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: BlazingMQ = host.server
        if self.uri in server.broker.queues:
            server.journal.state(host.engine.now, "", "redelivery", self.uri, fault)
            server.redeliver(self.uri)


class NodeAction(Action, frozen=True):
    """See `StopNode` and `ShutDown`; `timeout_s` None: at once."""

    node: int
    timeout_s: float | None

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: BlazingMQ = host.server
        if self.node > len(server.nodes):
            return
        how = "at once" if self.timeout_s is None else "in order"
        server.journal.state(host.engine.now, "", "node stopped", f"node {self.node}, {how}", fault)
        if self.timeout_s is None:
            server.stop_node(self.node)
        else:
            server.shut_down(self.node, self.timeout_s)


class RedeliverNow(Effect, frozen=True, tag="redeliver-now"):
    """All that consumers of a queue have not confirmed comes again, with the flag of such deliveries.

    Attributes:
        uri: The queue's name without ``?id=``; nothing happens if there is none.
    """

    needs_frame = False
    needs_broker = True
    once = True
    per_run = True
    realism = Realism.LEGAL
    uri: str

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host(Redelivery(self.uri))


class StopNode(Effect, frozen=True, tag="stop-node"):
    """A broker of the cluster goes down: its connections end.

    Attributes:
        node: Its number, from 1.
    """

    needs_frame = False
    needs_broker = True
    once = True
    per_run = True
    realism = Realism.ENVIRONMENT
    node: int = 1

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host(NodeAction(self.node, None))

    def check(self, path: str) -> None:
        if self.node < 1:
            raise PlanError(f"{path}.node", f"expected a node's number from 1, got {self.node}")


class ShutDown(Effect, frozen=True, tag="shut-down"):
    """A broker of the cluster goes down in order: a connection ends once its deliveries are confirmed.

    Attributes:
        node: Its number, from 1.
        timeout_s: Seconds after which it ends all the same.
    """

    needs_frame = False
    needs_broker = True
    once = True
    per_run = True
    realism = Realism.LEGAL
    node: int = 1
    timeout_s: float = 5.0

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host(NodeAction(self.node, self.timeout_s))

    def check(self, path: str) -> None:
        if self.node < 1:
            raise PlanError(f"{path}.node", f"expected a node's number from 1, got {self.node}")
        if self.timeout_s < 0:
            raise PlanError(f"{path}.timeout_s", f"expected seconds from 0, got {self.timeout_s}")
