"""What one effect may do to one parcel: the implementation of `effect.Passage`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from random import Random
from typing import TYPE_CHECKING, Any

from fakebrokers.core.frames import Frame, Role
from fakebrokers.core.session import HangUp
from fakebrokers.faults.lanes import Lanes
from fakebrokers.faults.parcel import Parcel
from fakebrokers.faults.rule import Rule, RuleState

if TYPE_CHECKING:
    from fakebrokers.faults.effect import Action


class PipePassage:
    """One effect of one rule at work on one parcel, or (parcel None) on the connection as such.

    Args:
        out: Gets what goes on.
        offset: Where the frame's first byte stands in its direction's stream.
    """

    __slots__ = ("_lane", "_lanes", "_out", "_parcel", "_rule", "_state", "direction", "now", "offset")

    def __init__(
        self,
        lanes: Lanes,
        rule: Rule,
        state: RuleState,
        direction: str,
        parcel: Parcel | None,
        now: float,
        offset: int,
        out: list[Parcel],
    ) -> None:
        self._lanes = lanes
        self._rule = rule
        self._state = state
        self._lane = lanes.lanes[direction]
        self._out = out
        self._parcel = Parcel() if parcel is None else parcel
        self.direction = direction
        self.now = now
        self.offset = offset

    # what is there

    @property
    def frame(self) -> Frame | None:
        return self._parcel.frame

    @property
    def data(self) -> Any:
        parcel = self._parcel
        if parcel.raw is not None:
            return parcel.raw
        if parcel.unit is None:
            assert parcel.frame is not None
            parcel.unit = self._lanes.end.encode(parcel.whole)
        return parcel.unit

    @property
    def size(self) -> int:
        return self._parcel.size or len(self.data)

    @property
    def role(self) -> Role | None:
        return None if self.frame is None else self.frame.spec.role_in(self.direction)

    @property
    def fault(self) -> str:
        return self._rule.name

    @property
    def connection(self) -> str:
        return self._lanes.end.name

    @property
    def random(self) -> Random:
        return self._state.random

    @property
    def memory(self) -> dict[str, Any]:
        return self._state.memory

    # what goes on

    def _another(self) -> Parcel:
        """A parcel that is on its way like the one at hand."""
        parcel = copy(self._parcel)
        names = parcel.fault.split(",") if parcel.fault else []
        if self._rule.name not in names:
            parcel.fault = ",".join([*names, self._rule.name])
        return parcel

    def pass_through(self, delay: float = 0.0) -> None:
        if self._parcel.frame is not None or self._parcel.raw is not None:
            parcel = self._another()
            parcel.delay_s += delay
            self._out.append(parcel)

    def pass_on(self, frame: Frame, delay: float = 0.0) -> None:
        parcel = self._another()
        if frame is not parcel.frame:
            parcel.items = self._lanes.same_items(frame, parcel.items)
            _put_in(parcel, frame)
        parcel.raw = None
        parcel.size = parcel.size if self.direction == "in" else 0
        parcel.delay_s += delay
        self._out.append(parcel)

    def pass_raw(self, data: Any, delay: float = 0.0) -> None:
        parcel = self._another()
        parcel.raw = data
        parcel.complete = False
        parcel.delay_s += delay
        self._out.append(parcel)

    def pass_pieces(self, pieces: Sequence[bytes], gaps: Sequence[float]) -> None:
        for number, (piece, gap) in enumerate(zip(pieces, gaps, strict=True), 1):
            parcel = self._another()
            parcel.raw = piece
            parcel.alone = True
            parcel.gap_s = gap
            parcel.complete = number == len(pieces) and (self._parcel.raw is None or self._parcel.complete)
            parcel.total = sum(map(len, pieces)) if parcel.complete else 0
            self._out.append(parcel)

    def pass_slowly(self, seconds: float) -> None:
        parcel = self._another()
        parcel.transmit_s += seconds
        self._out.append(parcel)

    def push_back(self, seconds: float) -> None:
        self._parcel = copy(self._parcel)
        self._parcel.hold_s += seconds

    def forget(self) -> None:
        self._out.clear()

    # what stays behind

    def hold_lane(self, seconds: float | None = None) -> None:
        self._lane.hold(self._rule.name, self._until(seconds))

    def park(self, frame: Frame, seconds: float | None = None) -> None:
        parcel = self._another()
        if frame is not parcel.frame:
            _put_in(parcel, frame)
        parcel.frame, parcel.envelope = parcel.whole, None
        self._lane.park(self._rule.name, self._lanes.packed(self.direction, parcel), self._until(seconds))

    def unpark(self) -> list[Frame]:
        return [p.frame for p in self._lane.unpark(self._rule.name) if p.frame is not None]

    def gather(self, frames: int | None, seconds: float) -> None:
        self._lane.gather(frames, self.now + seconds)

    # the connection and the fake

    def silence(self, exempt: Sequence[str], seconds: float | None) -> None:
        self._lanes.silence(self._rule.name, exempt, self._until(seconds))

    def answer(self, frame: Frame) -> None:
        self._answer(Parcel(frame=frame, fault=self._rule.name, final=True))

    def say_raw(self, data: Any) -> None:
        self._answer(Parcel(raw=data, fault=self._rule.name, final=True))

    def hang_up(self, how: HangUp, delay: float = 0.0) -> None:
        parcel = Parcel(end=how, fault=self._rule.name, final=True, delay_s=delay)
        if self.direction == "out":
            self._out.append(parcel)
        else:
            self._lanes.put("out", parcel, self.now)

    def _answer(self, parcel: Parcel) -> None:
        """Send to the client; after what goes on if that goes there too."""
        if self.direction == "out":
            self._out.append(parcel)
        else:
            self._lanes.end.answer(parcel, self.now)

    def stop_reading(self, seconds: float | None) -> None:
        self._lanes.end.pause_for_fault(self._rule.name, self._until(seconds))

    def host(self, action: Action) -> None:
        self._lanes.end.perform(action, self._rule.name)

    def _until(self, seconds: float | None) -> float:
        return math.inf if seconds is None else self.now + seconds

    # making frames and bytes

    def build(self, kind: str, fields: Mapping[str, Any]) -> Frame:
        return self._lanes.wire.build(kind, fields, self._rule.name)

    def refusal(self, code: int) -> Frame | None:
        return None if self.frame is None else self._lanes.end.refusal(self.frame, code)

    def encode(self, frame: Frame) -> Any:
        return self._lanes.end.encode(frame)

    def mend(self, data: Any) -> Any:
        return self._lanes.end.mend(data)


def _put_in(parcel: Parcel, frame: Frame) -> None:
    """The parcel carries another frame; one that was parked has its envelope with it."""
    if type(frame) is type(parcel.envelope):
        parcel.envelope = None
    parcel.frame, parcel.unit = frame, None
