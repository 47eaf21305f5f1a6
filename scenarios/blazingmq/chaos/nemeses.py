"""What happens to a cluster of BlazingMQ, and to the messages that consumers have not confirmed."""

from __future__ import annotations

from conformance.search.random.nemesis import Nemesis, NodeFlap, RollingNodes
from fakebrokers.faults import Realism
from fakebrokers.faults.disturbances import Row, begins
from fakebrokers.faults.steps import Step


class Redelivery(Nemesis):
    """The broker delivers again what is not confirmed."""

    name = "redelivery"
    about = "The broker delivers again what consumers have not confirmed."
    needs_broker = True
    realism = Realism.LEGAL

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return [begins(step.name, {"type": "redeliver-now"})]


NEMESES = (NodeFlap(), RollingNodes(), Redelivery())
