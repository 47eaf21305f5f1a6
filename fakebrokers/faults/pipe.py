"""The fault pipe of one connection: every frame of both directions goes through it.

    taps:   received --in--> heard          said --out--> sent

Each rule looks at the frame as it came into the pipe, counts for itself and draws from a random stream
of its own, derived from (seed, rule, connection name). A decision therefore depends neither on TCP
segments nor on what other rules do to the frame. What the rules that fire then do to it, they do one
after another, in the order of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from fakebrokers.core.frames import Frame, FrameSpec, kind_of
from fakebrokers.faults.effect import Effect
from fakebrokers.faults.items import strike_items
from fakebrokers.faults.lane import Lane
from fakebrokers.faults.match import Moment, fields_fit
from fakebrokers.faults.parcel import Parcel
from fakebrokers.faults.passage import PipePassage

if TYPE_CHECKING:
    from fakebrokers.faults.injector import Injector, Rule


class PipeEnd(Protocol):
    """What the pipe needs of its connection."""

    name: str

    def encode(self, frame: Frame) -> Any: ...

    def mend(self, unit: Any) -> Any: ...

    def refusal(self, frame: Frame, code: int) -> Frame | None: ...

    def pause_for_fault(self, name: str, until: float) -> None: ...

    def offset(self, direction: str) -> int:
        """Bytes of that direction that came before the frame at hand."""


class Pipe:
    """Both lanes of a connection and the rules that apply to it."""

    def __init__(self, injector: Injector, end: PipeEnd, now: float) -> None:
        self.injector = injector
        self.end = end
        self.lanes = {"in": Lane(), "out": Lane()}
        self._in, self._out = self.lanes["in"], self.lanes["out"]
        self._opened = now
        self._last_in = self._last_out = now
        self._idle_fired: dict[int, float] = {}
        self._silent_until = -math.inf
        self._spared: frozenset[str] = frozenset()
        self._silenced_by = ""
        self._generation = -1
        self._rules: tuple[Rule, ...] = ()
        self._idle_rules: tuple[Rule, ...] = ()
        self._relevant: dict[tuple[str, type[Frame]], tuple[Rule, ...]] = {}

    # which rules

    def _refresh(self) -> None:
        self._generation = self.injector.generation
        name = self.end.name
        self._rules = tuple(r for r in self.injector.rules if r.fault.match.connection in (None, name))
        self._idle_rules = tuple(r for r in self._rules if r.fault.match.on is Moment.IDLE)
        self._relevant.clear()

    def _rules_for(self, direction: str, frame: Frame) -> tuple[Rule, ...]:
        key = (direction, type(frame))
        rules = self._relevant.get(key)
        if rules is None:
            rules = tuple(r for r in self._rules if self._may_match(r, direction, frame))
            self._relevant[key] = rules
        return rules

    def _may_match(self, rule: Rule, direction: str, frame: Frame) -> bool:
        match = rule.fault.match
        return (
            match.on is None
            and rule.direction in ("", direction)
            and (match.kind is None or match.kind == kind_of(frame))
            and (match.role is None or match.role == self.injector.spec(frame).role)
        )

    # frames

    def untouched(self, direction: str, frame: Frame, now: float) -> bool:
        """Whether nothing stands in this frame's way; then the caller may pass it on by itself."""
        if direction == "in":
            self._last_in = now
        else:
            self._last_out = now
        if self._generation != self.injector.generation:
            self._refresh()
        if self._rules and self._rules_for(direction, frame):
            return False
        if direction == "in":
            return self._in.idle
        return self._out.idle and self._silent_until == -math.inf

    def push(self, direction: str, frame: Frame, size: int, now: float, unit: Any = None) -> str | None:
        """Send a frame through the rules into its lane.

        Args:
            size: Bytes on the wire.
            unit: For ``out`` the frame's unit.

        Returns:
            The names of the faults that fired; None if none did and nothing else stands in the frame's
            way: then the caller passes it on by itself.
        """
        if self._generation != self.injector.generation:
            self._refresh()
        spec = self.injector.spec(frame)
        offset = self.end.offset(direction)
        hits = []
        for rule in self._rules_for(direction, frame):
            chosen = self._decide(rule, frame, spec, offset, size, now)
            if chosen:
                hits.append((rule, chosen))
        if direction == "out" and self._swallowed(spec, now):
            return self._silenced_by
        if not hits and self.lanes[direction].idle:
            return None
        items = None if spec.items is None else tuple(range(spec.items.count(frame)))
        parcels = [Parcel(frame=frame, unit=unit, size=size, items=items)]
        for rule, chosen in hits:
            strike = partial(self._strike, rule, direction, now=now, offset=offset)
            parcels = strike(parcels) if chosen is True else strike_items(strike, chosen, parcels, spec)
        for parcel in parcels:
            self.put(direction, parcel, now)
        return ",".join(rule.name for rule, _ in hits)

    def put(self, direction: str, parcel: Parcel, now: float) -> None:
        """Send something on its way, past the rules."""
        self.lanes[direction].put(self.packed(direction, parcel), now)

    def packed(self, direction: str, parcel: Parcel) -> Parcel:
        """Turn a frame that is to leave into bytes, whose number is then known."""
        if direction == "out" and parcel.end is None:
            if parcel.raw is None:
                assert parcel.frame is not None
                parcel.raw = self.end.encode(parcel.frame) if parcel.unit is None else parcel.unit
                parcel.complete = True
            parcel.size = unit_size(parcel.raw)
        return parcel

    def _swallowed(self, spec: FrameSpec, now: float) -> bool:
        if self._silent_until <= now:
            self._silent_until = -math.inf
            return False
        return spec.role not in self._spared

    def _decide(
        self, rule: Rule, frame: Frame, spec: FrameSpec, offset: int, size: int, now: float
    ) -> bool | frozenset[int]:
        """Whether a rule fires for this frame; with unit ``item`` for which of its items."""
        match = rule.fault.match
        state = rule.state(self.end.name)
        if match.unit == "item" and spec.items is not None:
            return frozenset(
                index
                for index, key in enumerate(spec.items.keys(frame))
                if fields_fit(frame, match.where, key) and rule.decide(state, now, self._opened)
            )
        if match.byte is not None and not offset <= match.byte < offset + size:
            return False
        key = getattr(frame, spec.key) if spec.key else None
        return fields_fit(frame, match.where, key) and rule.decide(state, now, self._opened)

    def _strike(
        self,
        rule: Rule,
        direction: str,
        parcels: list[Parcel],
        now: float,
        offset: int,
        *,
        moment: bool = False,
    ) -> list[Parcel]:
        """Let a rule act; returns what goes on."""
        rule.fired += 1
        state = rule.state(self.end.name)

        def run(effect: Effect, parcel: Parcel | None, out: list[Parcel]) -> None:
            effect.apply(PipePassage(self, rule, state, direction, parcel, now, offset, out))

        acts = rule.fault.effects
        for effect in (e for e in acts if not e.last):
            out: list[Parcel] = []
            if moment or (effect.once and not parcels):
                run(effect, None, out)
            fresh = True
            for parcel in parcels:
                raw = parcel.raw is not None and not effect.takes_raw
                if parcel.final or raw or (effect.once and not fresh):
                    out.append(parcel)
                else:
                    run(effect, parcel, out)
                    fresh = False
            parcels = out
        for effect in (e for e in acts if e.last):
            run(effect, None, parcels)
        return parcels

    def same_items(self, frame: Frame, items: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """What is left of the account of items when an effect made another frame of one."""
        spec = self.injector.spec(frame)
        return items if items and spec.items and spec.items.count(frame) == len(items) else None

    # moments and time

    def moment(self, moment: Moment, now: float) -> str:
        """A moment of the connection has come; returns the names of the faults that fired."""
        if self._generation != self.injector.generation:
            self._refresh()
        fired = []
        for rule in self._rules:
            if rule.fault.match.on is not moment:
                continue
            if rule.decide(rule.state(self.end.name), now, self._opened):
                self._strike_moment(rule, now)
                fired.append(rule.name)
        return ",".join(fired)

    def _strike_moment(self, rule: Rule, now: float) -> None:
        direction = rule.direction or "out"
        for parcel in self._strike(rule, direction, [], now, self.end.offset(direction), moment=True):
            self.put("out", parcel, now)

    def _idle_deadlines(self) -> Iterable[tuple[float, Rule]]:
        for rule in self._idle_rules:
            since = self._silent_since(rule.direction)
            if self._idle_fired.get(rule.index) != since:  # once for each time of silence
                yield since + (rule.fault.match.after_s or 0.0), rule

    def _silent_since(self, direction: str) -> float:
        if direction == "in":
            return self._last_in
        return self._last_out if direction == "out" else max(self._last_in, self._last_out)

    def next_deadline(self) -> float:
        """When `handle_timer` is to be called next; inf if never."""
        if self._generation != self.injector.generation:
            self._refresh()
        due = min(self._in.next_due(), self._out.next_due())
        return min([due, *(at for at, _ in self._idle_deadlines())]) if self._idle_rules else due

    def handle_timer(self, now: float) -> str:
        """Fire what waits for silence; returns the names of the faults that fired.

        What a lane holds is taken by the connection.
        """
        fired = []
        for at, rule in tuple(self._idle_deadlines()):
            if at <= now:
                self._idle_fired[rule.index] = self._silent_since(rule.direction)
                state = rule.state(self.end.name)
                if rule.fault.match.position_fits(state.next_position()) and rule.draw(state):
                    self._strike_moment(rule, now)
                    fired.append(rule.name)
        return ",".join(fired)

    def release(self, name: str, now: float) -> bool:
        """End what the fault `name` holds back on this connection."""
        found = [lane.release(name, now) for lane in self.lanes.values()]
        if self._silenced_by == name and self._silent_until > now:
            self._silent_until = -math.inf
            found.append(True)
        return any(found)

    def silence(self, name: str, spare: Sequence[str], until: float) -> None:
        """Swallow what is said from now on; see `Passage.silence`."""
        self._silent_until = until
        self._spared = frozenset(spare)
        self._silenced_by = name


def unit_size(unit: Any) -> int:
    """Bytes of a unit: of a multipart message the sum of its parts."""
    return sum(map(len, unit)) if isinstance(unit, tuple) else len(unit)
