"""One direction of a connection: what is on its way, when it is due, and in which order it leaves."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from functools import cached_property

from fakebrokers.core.session import HangUp
from fakebrokers.core.timers import Timer
from fakebrokers.faults.parcel import Parcel


class Lane:
    """Keeps parcels until they are due; never reorders those that are due at the same time.

    A FIN leaves after every byte that came before it, however late, as TCP orders it: it waits for what is
    delayed or parked too, and nothing comes after it. A reset waits for what is before it in line only.

    Attributes:
        idle: Whether a parcel that comes now could leave at once.
        over: Whether a FIN waits here or has left: bytes that come now never leave.
        size: Bytes of all parcels that wait here.
    """

    def __init__(self, new_timer: Callable[[], Timer]) -> None:
        """
        Args:
            new_timer: Makes the timer, when it is needed.
        """
        self.idle = True
        self.over = False
        self.size = 0
        self._new_timer = new_timer
        self._queue: list[tuple[float, int, Parcel]] = []
        self._order = 0
        self._not_before = -math.inf  #: earliest time at which the next parcel in line may leave
        self._holds: dict[str, float] = {}
        self._parked: dict[str, list[tuple[float, Parcel]]] = {}
        self._gather: tuple[float, float] | None = None
        self._ends: list[Parcel] = []  #: that wait for more than their turn in line

    def _changed(self) -> None:
        """Note whether anything waits here, and when it is due."""
        self.idle = self._not_before == -math.inf and not (
            self._queue or self._holds or self._parked or self._gather or self._ends
        )
        due = self._next_due()
        if due < math.inf or "timer" in vars(self):
            self.timer.set(due)

    @cached_property
    def timer(self) -> Timer:
        """Set to the time at which something here is due."""
        return self._new_timer()

    def put(self, parcel: Parcel, now: float) -> None:
        """Add a parcel; see `Parcel` for when it leaves. Bytes after a FIN are dropped."""
        if parcel.end is None:
            if not self.over:
                self._line_up(parcel, now)
        elif not parcel.delay_s and (parcel.end is HangUp.FIN or self._gathering(now)):
            self._put_end(parcel)
            self._changed()
        else:
            self._line_up(parcel, now)

    def _put_end(self, parcel: Parcel) -> None:
        self._ends.append(parcel)
        self.over = self.over or parcel.end is HangUp.FIN

    def _line_up(self, parcel: Parcel, now: float) -> None:
        if parcel.delay_s:
            due = now + parcel.delay_s + parcel.hold_s
        else:
            due = max(now + parcel.hold_s, self._not_before) + parcel.transmit_s
            if parcel.hold_s or parcel.transmit_s or parcel.gap_s:
                self._not_before = due + parcel.gap_s
        self._order += 1
        self.size += parcel.size
        heapq.heappush(self._queue, (due, self._order, parcel))
        self._changed()

    def hold(self, name: str, until: float) -> None:
        """Stand still until then, or until `release(name)`."""
        self._holds[name] = until
        self._changed()

    def park(self, name: str, parcel: Parcel, until: float) -> None:
        """Keep one parcel back; the others pass."""
        self._parked.setdefault(name, []).append((until, parcel))
        self.size += parcel.size
        self._changed()

    def unpark(self, name: str) -> list[Parcel]:
        """Take the parked parcels of a fault out."""
        parcels = [parcel for _, parcel in self._parked.pop(name, [])]
        self.size -= sum(parcel.size for parcel in parcels)
        self._changed()
        return parcels

    def gather(self, count: int | None, until: float) -> None:
        """Let nothing leave before `count` parcels wait, or the time has come."""
        if self._gather is None:
            self._gather = (math.inf if count is None else count, until)
            self._changed()

    def _gathering(self, now: float) -> bool:
        return self._gather is not None and len(self._queue) < self._gather[0] and now < self._gather[1]

    def release(self, name: str, now: float) -> bool:
        """End what the fault `name` holds or made late; it leaves now."""
        found = self._holds.pop(name, None) is not None
        if any(name in parcel.fault.split(",") for _, _, parcel in self._queue):
            self._release_early(name, now)
            found = True
        for parcel in self.unpark(name):
            self._line_up(parcel, now)
            found = True
        self._changed()
        return found

    def _release_early(self, name: str, now: float) -> None:
        """Let go what this fault made late; order stays, and what other faults made late stays late."""
        floor = now
        queue = []
        for due, order, parcel in sorted(self._queue, key=lambda entry: entry[1]):
            faults = parcel.fault.split(",")
            if parcel.delay_s:
                due = now if name in faults else due
            else:
                due = max(floor, due) if parcel.fault and name not in faults else floor
                floor = due
            queue.append((due, order, parcel))
        heapq.heapify(queue)
        self._queue = queue
        self._not_before = floor if floor > now else -math.inf

    def clear(self) -> None:
        """Lose everything that is on its way."""
        if "timer" in vars(self):
            self.timer.cancel()
        self.__init__(self._new_timer)  # type: ignore[misc]

    def rest(self) -> list[Parcel]:
        """Everything in line, whether due or not; what a fault holds or parked is left out."""
        parcels = [] if self._holds else [parcel for _, _, parcel in sorted(self._queue, key=lambda q: q[:2])]
        self.clear()
        return parcels

    def take(self, now: float) -> list[Parcel]:
        """The parcels that leave now, in order."""
        if self.idle:
            return []
        self._unpark_due(now)
        self._holds = {name: until for name, until in self._holds.items() if until > now}
        if self._holds or self._gathering(now):
            self._changed()
            return []
        self._gather = None
        out = []
        while self._queue and self._queue[0][0] <= now:
            parcel = heapq.heappop(self._queue)[2]
            self.size -= parcel.size
            if parcel.end is HangUp.FIN:
                self._put_end(parcel)
            else:
                out.append(parcel)
        if not self._queue and self._not_before <= now:
            self._not_before = -math.inf
        if self._ends:
            out += self._take_ends(now)
        self._changed()
        return out

    def _take_ends(self, now: float) -> list[Parcel]:
        """The ends that leave now."""
        bytes_wait = any(parcel.end is None for _, _, parcel in self._queue)
        stay = bytes_wait or self._parked or self._not_before > now
        ends = self._ends
        self._ends = [end for end in ends if stay and end.end is HangUp.FIN]
        return [end for end in ends if end not in self._ends]

    def _unpark_due(self, now: float) -> None:
        for name, parked in tuple(self._parked.items()):
            due = [parcel for until, parcel in parked if until <= now]
            if due:
                stay = [item for item in parked if item[0] > now]
                self.unpark(name)
                for parcel in due:
                    self._line_up(parcel, now)
                for until, parcel in stay:
                    self.park(name, parcel, until)

    def _next_due(self) -> float:
        """When `take` may have something; inf if nothing is due by itself."""
        if self.idle:
            return math.inf
        due = [until for parked in self._parked.values() for until, _ in parked]
        held = max(self._holds.values(), default=-math.inf)
        gathered = -math.inf
        if self._gather is not None and len(self._queue) < self._gather[0]:
            gathered = self._gather[1]
        if self._queue:
            due.append(max(self._queue[0][0], held, gathered))
        else:
            due.extend(at for at in (held, gathered, self._not_before) if at > -math.inf)
        return min(due, default=math.inf)
