"""Where a fake runs that is part of something larger: a host of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fakebrokers.core.listeners import Endpoint, Listener
from fakebrokers.core.loop import LoopHandle

if TYPE_CHECKING:
    from fakebrokers.core.driver import Driver


class Home(Protocol):
    """A host; `FakeServer` asks it for what it would else have of the operating system."""

    loop: LoopHandle

    def listener(self, driver: Driver, endpoint: Endpoint) -> Listener:
        """What listens there."""
