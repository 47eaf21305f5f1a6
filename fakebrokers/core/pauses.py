"""Why nothing is read from a client at present."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from fakebrokers.core.timers import Timer


class Reason(StrEnum):
    """Why nothing is read."""

    TURN = "turn"  #: the other connections have their turn
    SESSION = "session"  #: back pressure by the session
    BUFFER = "buffer"  #: the transport's buffer is full: the client does not read
    FAULT = "fault"  #: a fault has stopped it
    LANE_IN = "lane in"  #: faults hold back too much of what the client said
    LANE_OUT = "lane out"  #: faults hold back too much of what the broker said
    HALF_OPEN = "half-open"  #: the host has vanished, for good


class Pauses:
    """Reading stops while there is a reason to, and goes on when the last one is gone.

    Args:
        stop: Tells the transport to read no more.
        resume: Tells it to read on.
        timer: Makes a timer.

    Attributes:
        blocked: Whether there is a reason.
        reasons: All there are.
    """

    def __init__(
        self,
        stop: Callable[[], None],
        resume: Callable[[], None],
        timer: Callable[[Callable[[float], None]], Timer],
    ) -> None:
        self.blocked = False
        self._stop = stop
        self._resume = resume
        self.reasons: set[Reason] = set()
        self._stalls: dict[str, float] = {}
        self._new_timer = timer
        self._stall_timer: Timer | None = None

    def block(self, reason: Reason) -> None:
        """Read no more."""
        if not self.blocked:
            self._stop()
        self.reasons.add(reason)
        self.blocked = True

    def unblock(self, reason: Reason) -> bool:
        """This reason is gone; whether it was there."""
        if reason not in self.reasons:
            return False
        self.reasons.discard(reason)
        self.blocked = bool(self.reasons)
        if not self.blocked:
            self._resume()
        return True

    # faults, each by its name

    def stall(self, fault: str, until: float) -> None:
        """Read no more until then, or until the fault is released."""
        self._stalls[fault] = until
        if self._stall_timer is None:
            self._stall_timer = self._new_timer(self._end_stalls)
        self._stall_timer.set(min(self._stalls.values()))
        self.block(Reason.FAULT)

    def release(self, fault: str, now: float) -> bool:
        """The fault lets go; whether it had stopped anything."""
        found = self._stalls.pop(fault, None) is not None
        self._end_stalls(now)
        return found

    def _end_stalls(self, now: float) -> None:
        """Forget the stalls that are over."""
        if self._stalls:
            self._stalls = {fault: until for fault, until in self._stalls.items() if until > now}
        if self._stall_timer is not None:
            self._stall_timer.set(min(self._stalls.values(), default=None))
        if not self._stalls:
            self.unblock(Reason.FAULT)
