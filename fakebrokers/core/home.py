"""Where a fake runs that is part of something larger: hosts of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fakebrokers.core.listeners import Endpoint, Listener
from fakebrokers.core.loop import LoopHandle

if TYPE_CHECKING:
    from fakebrokers.core.driver import Driver


class Home(Protocol):
    """Hosts; `FakeServer` asks for what it would else have of the operating system."""

    loop: LoopHandle

    def listener(self, driver: Driver, endpoint: Endpoint) -> Listener:
        """What listens there."""

    def host_of(self, node: int) -> str:
        """The name of the host that a node of a cluster runs on, by number from 0."""
