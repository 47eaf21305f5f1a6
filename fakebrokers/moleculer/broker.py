"""What all connections of one fake share: the bus, and the fake nodes on it."""

from __future__ import annotations

from collections.abc import Callable

from fakebrokers.core.session import Broker
from fakebrokers.moleculer.bus import Bus
from fakebrokers.moleculer.nodes import FakeNode
from fakebrokers.moleculer.profile import Profile


class MoleculerBroker(Broker):
    """See the module's text.

    Args:
        profile: Which Moleculer its nodes are.
        bus: Carries the packets; None where nodes talk without a server.
        wall: Seconds since 1970 at a monotonic time.
    """

    def __init__(self, profile: Profile, bus: Bus | None, wall: Callable[[float], float]) -> None:
        self.profile = profile
        self.bus = bus
        self.wall = wall
        self.nodes: dict[str, FakeNode] = {}
        self.made = 0  #: fake nodes so far
        self.pliant: set[str] = set()  #: ids of those that speak the protocol of whoever they talk to

    def step_ended(self, now: float) -> None:
        if self.bus is not None:
            self.bus.hand_over(now)

    def reset(self) -> None:
        if self.bus is not None:
            self.bus.reset()
