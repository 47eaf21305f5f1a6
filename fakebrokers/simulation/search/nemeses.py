"""What happens to hosts, lines, brokers and applications of a simulation. By name; none keeps a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from fakebrokers.faults import disturbances
from fakebrokers.faults.disturbances import Row
from fakebrokers.faults.steps import FAULT, Step
from fakebrokers.simulation.search.survey import Survey, nodes_of

if TYPE_CHECKING:
    from fakebrokers.server import FakeServer
    from fakebrokers.simulation.applications import Application
    from fakebrokers.simulation.simulation import Simulation


class Nemesis(ABC):
    """One kind.

    Attributes:
        name: What steps and users call it.
        about: What it does, for people.
    """

    name: ClassVar[str]
    about: ClassVar[str]

    @abstractmethod
    def targets(self, survey: Survey) -> list[str]:
        """Whom it can be about."""

    def args(self, random: Random) -> dict[str, Any]:
        """How exactly, as plain values."""
        return {}

    @abstractmethod
    def begin(self, simulation: Simulation, step: Step) -> bool:
        """It takes place; False: there is nobody to whom it could."""

    def end(self, simulation: Simulation, step: Step) -> None:  # noqa: B027 - what is over at once has none
        """It is over; only after a `begin` that took place."""


class _OfBroker(Nemesis):
    """One that a broker has: rows of a fault plan."""

    def targets(self, survey: Survey) -> list[str]:
        return list(survey.brokers)

    @abstractmethod
    def rows(self, broker: FakeServer, step: Step) -> list[Row]:
        """What it is; none: it cannot be done to this one."""

    def begin(self, simulation: Simulation, step: Step) -> bool:
        broker = simulation.brokers.get(step.target)
        rows = [] if broker is None else self.rows(broker, step)
        if broker is not None and rows:
            broker.faults.add(*rows)
        return bool(rows)

    def end(self, simulation: Simulation, step: Step) -> None:
        broker = simulation.brokers[step.target]
        for name in broker.faults.names:
            if name == step.name or name.startswith(f"{step.name}-"):
                broker.faults.remove(name)


class Crash(_OfBroker):
    """The process ends, and comes back."""

    name = "crash"
    about = "The broker crashes and restarts with what it had stored."

    def args(self, random: Random) -> dict[str, Any]:
        return {"how": random.choice(("rst", "fin"))}

    def rows(self, broker: FakeServer, step: Step) -> list[Row]:
        return disturbances.crash(step.name, step.for_s, step.args)


class Refuse(_OfBroker):
    """No new connections."""

    name = "refuse"
    about = "The broker refuses new connections; those that are open go on."

    def rows(self, broker: FakeServer, step: Step) -> list[Row]:
        return disturbances.refuse(step.name, step.for_s, step.args)


class BlackHole(_OfBroker):
    """Connects hang."""

    name = "black-hole"
    about = "New connects hang; connections that are open go on."

    def rows(self, broker: FakeServer, step: Step) -> list[Row]:
        return disturbances.black_hole(step.name, step.for_s, step.args)


class Cut(_OfBroker):
    """Connections end."""

    name = "reset"
    about = "All connections of a broker end."

    def args(self, random: Random) -> dict[str, Any]:
        return {"how": random.choice(("rst", "fin"))}

    def rows(self, broker: FakeServer, step: Step) -> list[Row]:
        return disturbances.cut(step.name, step.for_s, step.args)


class _Line(Nemesis):
    """What lies between two hosts: the target is both names, with a bar between."""

    def targets(self, survey: Survey) -> list[str]:
        return ["|".join(pair) for pair in survey.lines]

    def begin(self, simulation: Simulation, step: Step) -> bool:
        pair = step.target.split("|")
        if not all(simulation.network.has(name) for name in pair):
            return False
        self.act(simulation, pair[0], pair[1], step)
        return True

    @abstractmethod
    def act(self, simulation: Simulation, one: str, other: str, step: Step) -> None:
        """Do it."""


class Partition(_Line):
    """Nothing passes."""

    name = "partition"
    about = "Nothing passes between two hosts; what was sent comes later."

    def act(self, simulation: Simulation, one: str, other: str, step: Step) -> None:
        simulation.partition(one, other)

    def end(self, simulation: Simulation, step: Step) -> None:
        simulation.heal(*step.target.split("|"))


class Latency(_Line):
    """A slow line."""

    name = "latency"
    about = "Everything between two hosts is late."

    def args(self, random: Random) -> dict[str, Any]:
        return {"seconds": random.choice((0.001, 0.02, 0.2, 1.0))}

    def act(self, simulation: Simulation, one: str, other: str, step: Step) -> None:
        simulation.latency(one, other, step.args["seconds"])

    def end(self, simulation: Simulation, step: Step) -> None:
        one, other = step.target.split("|")
        simulation.latency(one, other, 0.0)


class Kill(Nemesis):
    """An application dies."""

    name = "kill"
    about = "An application is killed, and started again with the same arguments and files."

    def targets(self, survey: Survey) -> list[str]:
        return list(survey.applications)

    def begin(self, simulation: Simulation, step: Step) -> bool:
        found = self._find(simulation, step)
        if found is None or not found.runs:
            return False
        found.kill(for_good=False)
        return True

    def end(self, simulation: Simulation, step: Step) -> None:
        found = self._find(simulation, step)
        if found is not None and found.was_killed:
            found.restart()

    def _find(self, simulation: Simulation, step: Step) -> Application[Any] | None:
        there = (each for each in simulation.applications if each.host.name == step.target)
        return next(there, None)


class StopNode(_OfBroker):
    """A node of a cluster stops."""

    name = "node"
    about = "A node of a broker stops and starts again."

    def targets(self, survey: Survey) -> list[str]:
        return [name for name, broker in survey.brokers.items() if broker.nodes > 1]

    def args(self, random: Random) -> dict[str, Any]:
        return {"node": random.randint(1, 3)}

    def rows(self, broker: FakeServer, step: Step) -> list[Row]:
        if step.args["node"] > nodes_of(broker):
            return []
        effect = {"type": "stop-node", "node": step.args["node"]}
        return [disturbances.begins(step.name, effect, until_s=step.for_s)]


class WireFault(_OfBroker):
    """A fault at frames, as a row of a fault plan."""

    name = FAULT
    about = "A fault at frames."

    def rows(self, broker: FakeServer, step: Step) -> list[Row]:
        return [{**step.args, "name": step.name}]


#: What is drawn besides faults at frames.
NEMESES: Mapping[str, Nemesis] = {
    each.name: each
    for each in (
        Cut(),
        Crash(),
        Partition(),
        Latency(),
        Kill(),
        Refuse(),
        BlackHole(),
        StopNode(),
    )
}
WIRE_FAULT = WireFault()
