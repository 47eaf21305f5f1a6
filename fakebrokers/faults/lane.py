"""One direction of a connection: what is on its way, when it is due, and in which order it leaves."""

from __future__ import annotations

import heapq
import math
from typing import Any

from fakebrokers.frames import Frame
from fakebrokers.session import HangUp


class Parcel:
    """Something on its way: a frame, or a raw unit, or the end of the connection."""

    __slots__ = ("alone", "end", "fault", "frame", "raw", "touched")

    def __init__(
        self,
        frame: Frame | None = None,
        raw: Any = None,
        end: HangUp | None = None,
        fault: str = "",
        *,
        alone: bool = False,
    ) -> None:
        self.frame = frame
        self.raw = raw
        self.end = end
        self.fault = fault
        self.alone = alone  #: leaves in a write of its own
        self.touched = False


class Lane:
    """Keeps parcels until they are due; never reorders those that are due at the same time."""

    def __init__(self) -> None:
        self._queue: list[tuple[float, int, Parcel]] = []
        self._order = 0
        self._floor = -math.inf
        self._holds: dict[str, float] = {}
        self._parked: dict[str, list[tuple[float, Parcel]]] = {}
        self._gather: tuple[int, float] | None = None

    @property
    def idle(self) -> bool:
        """Whether a parcel that comes now could leave at once."""
        return not (self._queue or self._holds or self._parked or self._gather) and self._floor == -math.inf

    def put(self, parcel: Parcel, now: float, delay: float = 0.0) -> None:
        """Add a parcel that may leave in `delay` seconds, and not before those that wait in line."""
        due = now + delay if delay else max(now, self._floor)
        self._order += 1
        heapq.heappush(self._queue, (due, self._order, parcel))

    def push_back(self, until: float) -> None:
        """What is put from now on leaves no earlier than `until`."""
        self._floor = max(self._floor, until)

    @property
    def floor(self) -> float:
        """Earliest time at which the next parcel in line may leave; -inf if at once."""
        return self._floor

    def hold(self, name: str, until: float) -> None:
        """Stand still until then, or until `release(name)`."""
        self._holds[name] = until

    def park(self, name: str, parcel: Parcel, until: float) -> None:
        """Keep one parcel back; the others pass."""
        self._parked.setdefault(name, []).append((until, parcel))

    def unpark(self, name: str) -> list[Parcel]:
        """Take the parked parcels of a fault out."""
        return [parcel for _, parcel in self._parked.pop(name, [])]

    def gather(self, count: int, until: float) -> None:
        """Let nothing leave before `count` parcels wait, or the time has come."""
        if self._gather is None:
            self._gather = (count, until)

    def release(self, name: str, now: float) -> bool:
        """End what the fault `name` holds; its parked parcels leave now."""
        found = self._holds.pop(name, None) is not None
        for parcel in self.unpark(name):
            self.put(parcel, now)
            found = True
        return found

    def clear(self) -> None:
        """Lose everything that is on its way."""
        self.__init__()  # type: ignore[misc]

    def take(self, now: float) -> list[Parcel]:
        """The parcels that leave now, in order."""
        self._wake(now)
        if any(until > now for until in self._holds.values()):
            return []
        self._holds.clear()
        if self._gather is not None:
            count, until = self._gather
            if len(self._queue) < count and now < until:
                return []
            self._gather = None
        out = []
        while self._queue and self._queue[0][0] <= now:
            out.append(heapq.heappop(self._queue)[2])
        if not self._queue and self._floor <= now:
            self._floor = -math.inf
        return out

    def _wake(self, now: float) -> None:
        for name, parked in tuple(self._parked.items()):
            stay = [item for item in parked if item[0] > now]
            for _, parcel in (item for item in parked if item[0] <= now):
                self.put(parcel, now)
            if stay:
                self._parked[name] = stay
            else:
                del self._parked[name]

    def next_due(self) -> float:
        """When `take` may have something; inf if nothing is due by itself."""
        due = [until for parked in self._parked.values() for until, _ in parked]
        held = max(self._holds.values(), default=-math.inf)
        if self._queue:
            first = self._queue[0][0]
            if self._gather is not None and len(self._queue) < self._gather[0]:
                first = max(first, self._gather[1])
            due.append(max(first, held))
        elif self._holds and held < math.inf:
            due.append(held)
        elif self._floor > -math.inf:
            due.append(self._floor)
        return min(due, default=math.inf)
