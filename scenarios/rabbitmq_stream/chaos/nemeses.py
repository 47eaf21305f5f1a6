"""What happens to a cluster of RabbitMQ Stream (docs/protocols/rabbitmq-stream.md, 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.search.random.context import ChaosContext
from conformance.search.random.nemesis import Nemesis, NodeFlap, RollingNodes
from fakebrokers.core.wire import Wire
from fakebrokers.faults import Realism
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

    async def act(self, context: ChaosContext, step: Step) -> None:
        _move(context, step.args["node"])
        await asyncio.sleep(step.for_s)

    def heal(self, context: ChaosContext, step: Step) -> None:
        _move(context, 1)


def _move(context: ChaosContext, node: int | None) -> None:
    if FIRST in context.broker.streams:
        context.broker.move_leader(FIRST, node)


NEMESES = (LeaderMove(), NodeFlap(), RollingNodes())
