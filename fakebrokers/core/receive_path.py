"""What a connection has read and may not handle yet, and why nothing more is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from fakebrokers.core.frames import Frame
from fakebrokers.core.timers import Timer

#: Frames with their sizes, as a codec yields them.
Frames = Iterator[tuple[Frame, int]]


class ReceivePath:
    """Reading stops while there is a reason to, and goes on when the last one is gone.

    Args:
        stop: Tells the transport to read no more.
        resume: Tells it to read on.
        timer: Makes a timer.

    Attributes:
        blocked: Whether there is a reason.
        reasons: All there are.
        waiting: Frames of units that had come by then; none of them may be handled before those in front.
    """

    def __init__(
        self,
        stop: Callable[[], None],
        resume: Callable[[], None],
        timer: Callable[[Callable[[float], None]], Timer],
    ) -> None:
        self.blocked = False
        self.waiting: deque[Frames] = deque()
        self._stop = stop
        self._resume = resume
        self.reasons: set[str] = set()
        self._stalls: dict[str, float] = {}
        self._stall_timer = timer(self._end_stalls)

    def block(self, reason: str) -> None:
        """Read no more."""
        if not self.blocked:
            self._stop()
        self.reasons.add(reason)
        self.blocked = True

    def unblock(self, reason: str) -> None:
        """This reason is gone."""
        if reason in self.reasons:
            self.reasons.discard(reason)
            self.blocked = bool(self.reasons)
            if not self.blocked:
                self._resume()

    # faults, each by its name

    def stall(self, fault: str, until: float) -> None:
        """Read no more until then, or until the fault is released."""
        self._stalls[fault] = until
        self._stall_timer.set(min(self._stalls.values()))
        self.block("fault")

    def release(self, fault: str, now: float) -> bool:
        """The fault lets go; whether it had stopped anything."""
        found = self._stalls.pop(fault, None) is not None
        self._end_stalls(now)
        return found

    def _end_stalls(self, now: float) -> None:
        """Forget the stalls that are over."""
        if self._stalls:
            self._stalls = {fault: until for fault, until in self._stalls.items() if until > now}
        self._stall_timer.set(min(self._stalls.values(), default=None))
        if not self._stalls:
            self.unblock("fault")
