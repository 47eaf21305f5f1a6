"""What happens to a cluster of RabbitMQ Stream (docs/protocols/rabbitmq-stream.md, 9)."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.search.random.nemesis import Nemesis, NodeFlap, RollingNodes
from fakebrokers.core.wire import Wire
from fakebrokers.faults import Realism
from fakebrokers.faults.disturbances import Row, begins
from fakebrokers.faults.steps import Step

FIRST = "S1"  #: the stream that any workload has


class LeaderMove(Nemesis):
    """Another node is elected leader of the first stream."""

    name = "leader-move"
    about = "Another node leads the first stream, perhaps nobody for a while; then the first node again."
    needs_broker = True
    realism = Realism.LEGAL

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any] | None:
        nodes = params.get("nodes", 1)
        return {"node": random.choice((None, *range(2, nodes + 1)))} if nodes > 1 else None

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        effect = {"type": "move-leader", "stream": FIRST, "node": step.args["node"]}
        return [begins(step.name, effect, until_s=step.for_s)]


NEMESES = (LeaderMove(), NodeFlap(), RollingNodes())
