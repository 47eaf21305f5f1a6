"""Effects on the broker as a whole: what operators and their accidents do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Action, EffectOnFake, Realism

if TYPE_CHECKING:
    from fakebrokers.blazingmq.server import BlazingMQ
    from fakebrokers.core.host import Host


class Redelivery(Action, frozen=True):
    """See `RedeliverNow`."""

    uri: str

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: BlazingMQ = host.server
        for uri in [self.uri] if self.uri else list(server.broker.queues):
            if uri in server.broker.queues:
                server.journal.state(host.engine.now, "", "redelivery", uri, fault)
                server.redeliver(uri)


class EndNode(Action, frozen=True):
    """See `ShutDown`."""

    node: int
    timeout_s: float

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: BlazingMQ = host.server
        if self.node <= len(server.nodes):
            note = f"node {self.node}, in order"
            server.journal.state(host.engine.now, "", "node stopped", note, fault)
            server.shut_down(self.node, self.timeout_s)
            host.engine.until_over(fault, lambda: server.start_node(self.node))


class RedeliverNow(EffectOnFake, frozen=True, tag="redeliver-now"):
    """All that consumers of a queue have not confirmed comes again, with the flag of such deliveries.

    Attributes:
        uri: The queue's name without ``?id=``; nothing happens if there is none. "": of all queues.
    """

    needs_broker = True
    realism = Realism.LEGAL
    uri: str = ""

    def action(self) -> Action:
        return Redelivery(self.uri)


class ShutDown(EffectOnFake, frozen=True, tag="shut-down"):
    """A broker of the cluster goes down in order: a connection ends once its deliveries are confirmed.

    Attributes:
        node: Its number, from 1.
        timeout_s: Seconds after which it ends all the same.
    """

    needs_broker = True
    realism = Realism.LEGAL
    node: int = 1
    timeout_s: float = 5.0

    def action(self) -> Action:
        return EndNode(self.node, self.timeout_s)

    def check(self, path: str) -> None:
        if self.node < 1:
            raise PlanError(f"{path}.node", f"expected a node's number from 1, got {self.node}")
        if self.timeout_s < 0:
            raise PlanError(f"{path}.timeout_s", f"expected seconds from 0, got {self.timeout_s}")
