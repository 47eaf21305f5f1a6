"""Who takes part in a run that nothing disturbs, and what goes over the wire: what faults can be about."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from fakebrokers.core.frames import Role

if TYPE_CHECKING:
    from fakebrokers.server import FakeServer
    from fakebrokers.simulation.simulation import Simulation

MOMENTS_MAX = 200


class Spoken(msgspec.Struct, frozen=True):
    """Frames of a direction and role, and how many there were."""

    direction: str
    role: Role
    count: int


class BrokerSeen(msgspec.Struct, frozen=True):
    """A broker."""

    protocol: str
    nodes: int
    spoken: list[Spoken]


class Survey(msgspec.Struct, frozen=True):
    """All of it.

    Attributes:
        brokers: By the name of their host.
        applications: Names of their hosts.
        lines: Hosts between which there was a connection.
        moments: Virtual times at which frames passed, the first few hundred of them.
        ended_s: Virtual time at which it was over.
    """

    brokers: dict[str, BrokerSeen]
    applications: list[str]
    lines: list[tuple[str, str]]
    moments: list[float]
    ended_s: float


def survey_of(simulation: Simulation) -> Survey:
    """What there is to see of a run that has ended."""
    records = {name: broker.journal.records() for name, broker in simulation.brokers.items()}
    moments = {round(each.at, 3) for some in records.values() for each in some if each.tap.direction}
    return Survey(
        {name: _seen(broker) for name, broker in simulation.brokers.items()},
        [each.host.name for each in simulation.applications],
        list(simulation.network.lines),
        sorted(moments)[:MOMENTS_MAX],
        simulation.now,
    )


def _seen(broker: FakeServer) -> BrokerSeen:
    spoken = Counter(
        (record.tap.direction, Role(part.role))
        for record in broker.journal.records()
        for part in (record.parts or (record,))
        if record.tap.direction
    )
    rows = [Spoken(direction, role, count) for (direction, role), count in sorted(spoken.items())]
    return BrokerSeen(broker.protocol.name, nodes_of(broker), rows)


def nodes_of(broker: Any) -> int:
    """How many nodes it has that can be stopped."""
    return len(broker.nodes) if hasattr(broker, "stop_node") else 1
