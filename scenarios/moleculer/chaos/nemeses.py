"""What happens to the nodes of Moleculer, and to the bus between them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.search.random.context import ChaosContext
from conformance.search.random.nemesis import Nemesis
from fakebrokers.core.wire import Wire
from fakebrokers.faults.disturbances import PAUSE_S, Row, begins
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

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        deaf = step.args["deaf"]
        senders, receivers = ("client1", "peer") if deaf == "peer" else ("peer", "client1")
        effect = {
            "type": "partition-bus",
            "senders": [senders],
            "receivers": [receivers],
            "one_way": deaf != "both",
        }
        return [begins(step.name, effect, until_s=step.for_s)]

    async def begun(self, context: ChaosContext, step: Step) -> None:
        context.notes.silent = True


class NodeFlap(Nemesis):
    """A node that comes and goes."""

    name = "node-flap"
    about = "The first node goes, in good order or without a word, and joins again, several times."
    needs_broker = True
    in_plan = False

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"times": random.choice((1, 2, 3)), "politely": random.random() < 0.5}

    async def begun(self, context: ChaosContext, step: Step) -> None:
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
    in_plan = False

    async def begun(self, context: ChaosContext, step: Step) -> None:
        context.notes.silent = True
        context.memo["peers"][0].stop_heartbeats()

    def heal(self, context: ChaosContext, step: Step) -> None:
        context.memo["peers"][0].resume_heartbeats()


NEMESES = (BusPartition(), NodeFlap(), Mute())
