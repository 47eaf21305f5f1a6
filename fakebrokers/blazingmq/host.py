"""What a queue asks of its broker, and what all queues of a domain hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fakebrokers.blazingmq.profile import Profile
    from fakebrokers.core.timers import Timers


class Host(Protocol):
    """The broker of a queue.

    Attributes:
        now: When what happens now happens, monotonic seconds.
    """

    now: float
    profile: Profile

    @property
    def timers(self) -> Timers:
        """All timers of the fake."""

    def wall(self, now: float) -> float:
        """Seconds since 1970 at a monotonic time."""

    def flush(self) -> None:
        """Say all deliveries."""

    def touched(self, look: Callable[[float], None]) -> None:
        """Let a queue look at the ages of its messages, once what happens now has been dealt with."""


class Usage:
    """What all queues of a domain hold."""

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
