"""What happens to the nodes of Moleculer, and to the bus between them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.search.random.context import ChaosContext
from conformance.search.random.nemesis import PAUSE_S, Nemesis
from fakebrokers.core.wire import Wire
from fakebrokers.faults.steps import Step
from fakebrokers.moleculer.node import Node
from scenarios.moleculer.sweep._shared import service_of_peer


class BusPartition(Nemesis):
    """Nodes do not hear each other; all connections to the bus go on."""

    name = "bus-partition"
    about = "The first node and the client do not hear each other, or one does not hear the other."
    needs_broker = True

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"deaf": random.choice(("both", "client", "peer"))}

    async def act(self, context: ChaosContext, step: Step) -> None:
        context.notes.silent = True
        deaf = step.args["deaf"]
        senders, receivers = (("client1",), ("peer",)) if deaf == "peer" else (("peer",), ("client1",))
        context.broker.partition(senders, receivers, one_way=deaf != "both", fault=step.name)
        await asyncio.sleep(step.for_s)

    def heal(self, context: ChaosContext, step: Step) -> None:
        context.broker.heal(fault=step.name)


class NodeFlap(Nemesis):
    """A node that comes and goes."""

    name = "node-flap"
    about = "The first node goes, in good order or without a word, and joins again, several times."
    needs_broker = True

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"times": random.choice((1, 2, 3)), "politely": random.random() < 0.5}

    async def act(self, context: ChaosContext, step: Step) -> None:
        context.notes.silent = True
        pause_s = max(PAUSE_S, step.for_s / (2 * step.args["times"]))
        node = context.memo["peers"][0]
        for _ in range(step.args["times"]):
            node.stop() if step.args["politely"] else node.kill()
            await asyncio.sleep(pause_s)
            _join(node)
            await asyncio.sleep(pause_s)

    def heal(self, context: ChaosContext, step: Step) -> None:
        _join(context.memo["peers"][0])


def _join(node: Node) -> None:
    """As a new instance, with its services: one that stops in good order takes them back."""
    node.restart()
    node.serve([service_of_peer()])


class Mute(Nemesis):
    """The first node goes on without heartbeats."""

    name = "mute"
    about = "The first node goes on, and sends no heartbeats."
    needs_broker = True

    async def act(self, context: ChaosContext, step: Step) -> None:
        context.notes.silent = True
        context.memo["peers"][0].stop_heartbeats()
        await asyncio.sleep(step.for_s)

    def heal(self, context: ChaosContext, step: Step) -> None:
        context.memo["peers"][0].resume_heartbeats()


NEMESES = (BusPartition(), NodeFlap(), Mute())
