"""The fault pipe of one connection: every frame of both directions goes through it.

    taps:   received --in--> heard          said --out--> sent

Each rule counts for itself and draws from a random stream of its own, derived from (seed, rule,
connection name). A decision therefore depends neither on TCP segments nor on other rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fakebrokers.faults.effect import Effect
from fakebrokers.faults.lane import Lane, Parcel
from fakebrokers.faults.match import Moment, fields_fit
from fakebrokers.frames import Frame, FrameSpec, kind_of
from fakebrokers.session import HangUp

if TYPE_CHECKING:
    from fakebrokers.faults.injector import Injector, Rule, RuleState


class PipeEnd(Protocol):
    """What the pipe needs of its connection."""

    name: str

    def encode(self, frame: Frame) -> Any: ...

    def mend(self, unit: Any) -> Any: ...

    def refusal(self, frame: Frame, code: int) -> Frame | None: ...

    def pause_for_fault(self, until: float) -> None: ...


class Pipe:
    """Both lanes of a connection and the rules that apply to it."""

    def __init__(self, injector: Injector, end: PipeEnd, now: float) -> None:
        self._injector = injector
        self._end = end
        self._opened = now
        self._last_traffic = now
        self._idle_fired: set[int] = set()
        self.lanes = {"in": Lane(), "out": Lane()}
        self._silent_until = -math.inf
        self._spared: frozenset[str] = frozenset()
        self._silenced_by = ""
        self._generation = -1
        self._rules: tuple[Rule, ...] = ()
        self._relevant: dict[tuple[str, type[Frame]], tuple[Rule, ...]] = {}

    # which rules

    def _refresh(self) -> None:
        self._generation = self._injector.generation
        name = self._end.name
        self._rules = tuple(
            r for r in self._injector.rules if r.fault.match.connection in (None, name)
        )
        self._relevant.clear()

    def _rules_for(self, direction: str, frame: Frame) -> tuple[Rule, ...]:
        if self._generation != self._injector.generation:
            self._refresh()
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
            and (match.role is None or match.role == self._injector.spec(frame).role)
        )

    # frames

    def untouched(self, direction: str, frame: Frame, now: float) -> bool:
        """Whether nothing stands in this frame's way; then the caller may pass it on by itself."""
        self._last_traffic = now
        return (
            not self._rules_for(direction, frame)
            and self.lanes[direction].idle
            and (direction == "in" or self._silent_until == -math.inf)
        )

    def push(self, direction: str, frame: Frame, now: float) -> str:
        """Send a frame through the rules into its lane; returns the names of the faults that fired."""
        if direction == "out" and self._swallowed(frame, now):
            return self._silenced_by
        parcels = [Parcel(frame)]
        fired = []
        for rule in self._rules_for(direction, frame):
            passed: list[Parcel] = []
            hit = False
            for parcel in parcels:
                if parcel.frame is None or not self._apply(rule, direction, parcel, now, passed):
                    passed.append(parcel)
                else:
                    hit = True
            if hit:
                fired.append(rule.name)
                parcels = passed
        for parcel in parcels:
            self.lanes[direction].put(parcel, now)
        return ",".join(fired)

    def _swallowed(self, frame: Frame, now: float) -> bool:
        if self._silent_until <= now:
            self._silent_until = -math.inf
            return False
        return self._injector.spec(frame).role not in self._spared

    def _apply(self, rule: Rule, direction: str, parcel: Parcel, now: float, out: list[Parcel]) -> bool:
        """Run one rule over one parcel. False if it does not fire; else `out` holds what goes on."""
        frame = parcel.frame
        assert frame is not None
        spec = self._injector.spec(frame)
        state = rule.state(self._end.name)
        if rule.fault.match.unit == "item" and spec.items is not None:
            return self._apply_to_items(rule, state, direction, frame, spec, now, out)
        key = getattr(frame, spec.key) if spec.key else None
        if not fields_fit(frame, rule.fault.match.where, key) or not rule.decide(state, now, self._opened):
            return False
        self._fire(rule, state, direction, frame, now, out)
        return True

    def _apply_to_items(
        self,
        rule: Rule,
        state: RuleState,
        direction: str,
        frame: Frame,
        spec: FrameSpec,
        now: float,
        out: list[Parcel],
    ) -> bool:
        items = spec.items
        assert items is not None
        where = rule.fault.match.where
        chosen = [
            fields_fit(frame, where, key) and rule.decide(state, now, self._opened)
            for key in items.keys(frame)
        ]
        if not any(chosen):
            return False
        untouched: list[int] = []  # adjacent items that nothing came between stay one frame
        for index, hit in enumerate(chosen):
            if not hit:
                untouched.append(index)
                continue
            fate: list[Parcel] = []
            self._fire(rule, state, direction, items.select(frame, [index]), now, fate)
            if fate:
                if untouched:
                    out.append(Parcel(items.select(frame, untouched)))
                    untouched = []
                out.extend(fate)
        if untouched:
            out.append(Parcel(items.select(frame, untouched)))
        return True

    def _fire(
        self, rule: Rule, state: RuleState, direction: str, frame: Frame | None, now: float, out: list[Parcel]
    ) -> None:
        rule.fired += 1
        effects = rule.fault.effects
        parcels = [Parcel(frame)] if frame is not None else []
        for effect in (e for e in effects if not e.last):
            passed: list[Parcel] = []
            if frame is None:
                self._run(effect, rule, state, direction, None, now, passed)
            for parcel in parcels:
                if parcel.frame is None:
                    passed.append(parcel)
                else:
                    self._run(effect, rule, state, direction, parcel.frame, now, passed)
            parcels = passed
        for effect in (e for e in effects if e.last):
            self._run(effect, rule, state, direction, frame, now, parcels)
        for parcel in parcels:
            parcel.fault = parcel.fault or rule.name
        out.extend(parcels)

    def _run(
        self,
        effect: Effect,
        rule: Rule,
        state: RuleState,
        direction: str,
        frame: Frame | None,
        now: float,
        out: list[Parcel],
    ) -> None:
        effect.apply(_Passage(self, rule, state, direction, frame, now, out))

    # moments and time

    def moment(self, moment: Moment, now: float) -> str:
        """A moment of the connection has come; returns the names of the faults that fired."""
        if self._generation != self._injector.generation:
            self._refresh()
        fired = []
        for rule in self._rules:
            if rule.fault.match.on is not moment or moment is Moment.IDLE:
                continue
            state = rule.state(self._end.name)
            if rule.decide(state, now, self._opened):
                self._fire_moment(rule, state, now)
                fired.append(rule.name)
        return ",".join(fired)

    def _fire_moment(self, rule: Rule, state: RuleState, now: float) -> None:
        parcels: list[Parcel] = []
        self._fire(rule, state, "out", None, now, parcels)
        for parcel in parcels:
            self.lanes["out"].put(parcel, now)

    def _idle_deadlines(self) -> list[tuple[float, Rule]]:
        return [
            (self._last_traffic + (r.fault.match.after_s or 0.0), r)
            for r in self._rules
            if r.fault.match.on is Moment.IDLE and r.index not in self._idle_fired
        ]

    def next_deadline(self) -> float | None:
        """When `handle_timer` is to be called next."""
        if self._generation != self._injector.generation:
            self._refresh()
        due = min(self.lanes["in"].next_due(), self.lanes["out"].next_due())
        due = min([due, *(at for at, _ in self._idle_deadlines())])
        return None if due == math.inf else due

    def handle_timer(self, now: float) -> None:
        """Fire what waits for silence. What a lane holds is taken by the connection."""
        for at, rule in self._idle_deadlines():
            if at <= now:
                self._idle_fired.add(rule.index)
                state = rule.state(self._end.name)
                if rule.fault.match.position_fits(state.next_position()) and rule.draw(state):
                    self._fire_moment(rule, state, now)

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

    @property
    def injector(self) -> Injector:
        """The fake's faults."""
        return self._injector

    @property
    def end(self) -> PipeEnd:
        """The connection that this pipe belongs to."""
        return self._end


class _Passage:
    """Implements `faults.effect.Passage` for one effect and one frame."""

    __slots__ = ("_lane", "_out", "_pipe", "_rule", "direction", "frame", "memory", "now", "random")

    def __init__(
        self,
        pipe: Pipe,
        rule: Rule,
        state: RuleState,
        direction: str,
        frame: Frame | None,
        now: float,
        out: list[Parcel],
    ) -> None:
        self._pipe = pipe
        self._rule = rule
        self._out = out
        self._lane = pipe.lanes[direction]
        self.frame = frame
        self.direction = direction
        self.now = now
        self.random = state.random
        self.memory = state.memory

    @property
    def fault(self) -> str:
        return self._rule.name

    @property
    def connection(self) -> str:
        return self._pipe.end.name

    def pass_on(self, frame: Frame, delay: float = 0.0) -> None:
        parcel = Parcel(frame, fault=self._rule.name)
        if delay:
            self._lane.put(parcel, self.now, delay)
        else:
            self._out.append(parcel)

    def pass_raw(self, data: Any, delay: float = 0.0) -> None:
        parcel = Parcel(raw=data, fault=self._rule.name)
        if delay:
            self._lane.put(parcel, self.now, delay)
        else:
            self._out.append(parcel)

    def pass_pieces(self, pieces: Sequence[bytes], gap_s: float) -> None:
        lane, start = self._lane, max(self.now, self._lane.floor)
        for number, piece in enumerate(pieces):
            if number:
                lane.push_back(start + number * gap_s)
            lane.put(Parcel(raw=piece, fault=self._rule.name, alone=True), self.now)

    def push_back(self, seconds: float) -> None:
        self._lane.push_back(self.now + seconds)

    def hold_lane(self, seconds: float | None = None) -> None:
        self._lane.hold(self._rule.name, self._until(seconds))

    def park(self, frame: Frame, seconds: float | None = None) -> None:
        self._lane.park(self._rule.name, Parcel(frame, fault=self._rule.name), self._until(seconds))

    def unpark(self) -> list[Frame]:
        return [p.frame for p in self._lane.unpark(self._rule.name) if p.frame is not None]

    def gather(self, frames: int, seconds: float) -> None:
        self._lane.gather(frames, self.now + seconds)

    def silence(self, spare: Sequence[str], seconds: float | None) -> None:
        self._pipe.silence(self._rule.name, spare, self._until(seconds))

    def answer(self, frame: Frame) -> None:
        parcel = Parcel(frame, fault=self._rule.name)
        if self.direction == "out":
            self._out.append(parcel)
        else:
            self._pipe.lanes["out"].put(parcel, self.now)

    def say_raw(self, data: Any) -> None:
        parcel = Parcel(raw=data, fault=self._rule.name)
        if self.direction == "out":
            self._out.append(parcel)
        else:
            self._pipe.lanes["out"].put(parcel, self.now)

    def build(self, kind: str, fields: Mapping[str, Any]) -> Frame:
        return self._pipe.injector.build(kind, fields, self._rule.name)

    def forget(self) -> None:
        self._out.clear()

    def mend(self, data: Any) -> Any:
        return self._pipe.end.mend(data)

    def push_back_more(self, seconds: float) -> None:
        self._lane.push_back(max(self.now, self._lane.floor) + seconds)

    def refusal(self, code: int) -> Frame | None:
        return None if self.frame is None else self._pipe.end.refusal(self.frame, code)

    def encode(self, frame: Frame) -> Any:
        return self._pipe.end.encode(frame)

    def hang_up(self, how: HangUp) -> None:
        parcel = Parcel(end=how, fault=self._rule.name)
        if self.direction == "in":
            self._pipe.lanes["out"].put(parcel, self.now)
        else:
            self._out.append(parcel)

    def stop_reading(self, seconds: float | None) -> None:
        self._pipe.end.pause_for_fault(self._until(seconds))

    def host(self, action: str, **arguments: Any) -> None:
        self._pipe.injector.request(action, self._rule.name, arguments)

    def _until(self, seconds: float | None) -> float:
        return math.inf if seconds is None else self.now + seconds
