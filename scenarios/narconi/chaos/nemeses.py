"""What happens to the RabbitMQ behind a Narconi server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.search.random.context import ChaosContext
from conformance.search.random.nemesis import Nemesis
from fakebrokers.core.wire import Wire
from fakebrokers.faults.steps import Step


class Backend(Nemesis):
    """Narconi loses its AMQP connection."""

    name = "backend"
    about = "Narconi loses its RabbitMQ: connections end with an error, and requests may fail for a while."
    needs_broker = True

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"down": random.random() < 0.5}

    async def act(self, context: ChaosContext, step: Step) -> None:
        context.broker.lose_backend(down=step.args["down"])
        await asyncio.sleep(step.for_s)

    def heal(self, context: ChaosContext, step: Step) -> None:
        context.broker.restore_backend()


NEMESES = (Backend(),)
