"""What happens to the RabbitMQ behind a Narconi server."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.search.random.nemesis import Nemesis
from fakebrokers.core.wire import Wire
from fakebrokers.faults.disturbances import Row, begins
from fakebrokers.faults.steps import Step


class Backend(Nemesis):
    """Narconi loses its AMQP connection."""

    name = "backend"
    about = "Narconi loses its RabbitMQ: connections end with an error, and requests may fail for a while."
    needs_broker = True

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"down": random.random() < 0.5}

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        effect = {"type": "break-backend", "down_s": step.for_s if step.args["down"] else 0.0}
        return [begins(step.name, effect, until_s=step.for_s)]


NEMESES = (Backend(),)
