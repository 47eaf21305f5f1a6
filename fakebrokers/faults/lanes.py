"""What is on its way on a connection, and what faults keep back of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fakebrokers.core.frames import Frame, Role
from fakebrokers.core.timers import Timer
from fakebrokers.core.wire import Wire
from fakebrokers.faults.lane import Lane
from fakebrokers.faults.parcel import Parcel, unit_size

if TYPE_CHECKING:
    from fakebrokers.faults.effect import Action


class PipeEnd(Protocol):
    """What the pipe needs of its connection.

    Attributes:
        name: Its name.
        peer: Who is at its other end, if the protocol says so; "" as long as it has not.
    """

    name: str
    peer: str

    def answer(self, parcel: Parcel, now: float) -> None:
        """Send something to the client on the connection where answers to it leave."""

    def encode(self, frame: Frame) -> Any: ...

    def mend(self, unit: Any) -> Any: ...

    def refusal(self, frame: Frame, code: int) -> Frame | None: ...

    def pause_for_fault(self, name: str, until: float) -> None: ...

    def perform(self, action: Action, fault: str) -> None:
        """Do something to the fake as a whole."""

    def timer(self, act: Callable[[float], None]) -> Timer:
        """A timer that ends with the connection."""

    def drain(self, now: float) -> None:
        """Something in a lane is due."""

    def fired(self, faults: str, now: float) -> None:
        """Note the faults that a moment set off."""

    def offset(self, direction: str) -> int:
        """Bytes of that direction that came before the frame at hand."""


class Lanes:
    """Both lanes of a connection, and whether a fault keeps its broker silent.

    Attributes:
        silenced_by: The name of that fault; "" for none.
    """

    def __init__(self, end: PipeEnd, wire: Wire) -> None:
        self.end = end
        self.wire = wire
        self.lanes = {"in": Lane(self._new_timer), "out": Lane(self._new_timer)}
        self.silenced_by = ""
        self._silent_until = -math.inf
        self._exempt: frozenset[str] = frozenset()

    def _new_timer(self) -> Timer:
        return self.end.timer(self.end.drain)

    def put(self, direction: str, parcel: Parcel, now: float) -> None:
        """Send something on its way, past the rules."""
        self.lanes[direction].put(self.packed(direction, parcel), now)

    def packed(self, direction: str, parcel: Parcel) -> Parcel:
        """Turn a frame that is to leave into bytes, whose number is then known."""
        if direction == "out" and parcel.end is None:
            if parcel.raw is None:
                parcel.raw = self.end.encode(parcel.whole) if parcel.unit is None else parcel.unit
                parcel.complete = True
            parcel.size = unit_size(parcel.raw)
        return parcel

    def same_items(self, frame: Frame, items: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """What is left of the account of items when an effect made another frame of one."""
        there = frame.spec.items
        return items if items and there and there.count(frame) == len(items) else None

    def is_silent(self, role: Role, now: float) -> bool:
        """Whether a fault keeps the broker from saying this."""
        if self._silent_until <= now:
            self._end_silence()
            return False
        return role not in self._exempt

    def silence(self, name: str, exempt: Sequence[str], until: float) -> None:
        """Drop what is said from now on; see `Passage.silence`."""
        self._silent_until = until
        self._exempt = frozenset(exempt)
        self.silenced_by = name

    def release(self, name: str, now: float) -> bool:
        """End what the fault `name` holds back on this connection."""
        found = [lane.release(name, now) for lane in self.lanes.values()]
        if self.silenced_by == name and self._silent_until > now:
            self._end_silence()
            found.append(True)
        return any(found)

    def _end_silence(self) -> None:
        self._silent_until = -math.inf
        self.silenced_by = ""
