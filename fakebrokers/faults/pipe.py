"""The fault pipe of one connection: every frame of both directions goes through it.

    taps:   received --in--> heard          said --out--> sent

Each rule looks at the frame as it came into the pipe, counts for itself and draws from a random stream
of its own, derived from (seed, rule, connection name). A decision therefore depends neither on TCP
segments nor on what other rules do to the frame. What the rules that fire then do to it, they do one
after another, in the order of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from fakebrokers.core.frames import Frame, Role, parts_of
from fakebrokers.core.timers import Timer
from fakebrokers.core.wire import Wire
from fakebrokers.faults.effect import Effect, EffectOnFake
from fakebrokers.faults.injector import Injector
from fakebrokers.faults.items import apply_to_items
from fakebrokers.faults.lanes import Lanes, PipeEnd
from fakebrokers.faults.levels import all_items, closed, may_match, of_frame, of_items, opened
from fakebrokers.faults.match import Match, Moment, fields_fit
from fakebrokers.faults.parcel import Parcel
from fakebrokers.faults.passage import PipePassage
from fakebrokers.faults.rule import Rule


class Pipe(Lanes):
    """Both lanes of a connection and the rules that apply to it; implements `injector.Place`."""

    def __init__(self, injector: Injector, end: PipeEnd, wire: Wire, now: float) -> None:
        super().__init__(end, wire)
        self.injector = injector
        self._in, self._out = self.lanes["in"], self.lanes["out"]
        self._opened = now
        self._last_in = self._last_out = now
        self._idle_fired: dict[int, float] = {}
        self._idle_spent = False  #: one has fired in this silence, so that the next one begins anew for it
        self._rules: list[Rule] = []
        self._at_moments: dict[Moment, list[Rule]] = {}
        self._idle_timer: Timer | None = None
        self._relevant: dict[tuple[str, type[Frame]], tuple[Rule, ...]] = {}
        injector.pipes[end.name] = self
        self.refresh()

    @property
    def idle(self) -> bool:
        """Whether nothing waits in either lane."""
        return self._in.idle and self._out.idle

    # which rules

    def refresh(self) -> None:
        """The plan has changed."""
        self._rules = []
        self._at_moments = {}
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self.extend(self.injector.at_work)

    def extend(self, rules: Iterable[Rule]) -> None:
        """The plan has more rules."""
        fresh = [rule for rule in rules if self._concerns(rule.fault.match)]
        self._rules += fresh
        self._relevant.clear()
        for rule in fresh:
            if (moment := rule.fault.match.on) is not None:
                self._at_moments.setdefault(moment, []).append(rule)
        if Moment.IDLE in self._at_moments:
            self._set_idle_timer()

    def _concerns(self, match: Match) -> bool:
        """Whether a rule is for this connection."""
        return match.connection in (None, self.end.name) and match.peer in (None, self.end.peer)

    def _rules_for(self, direction: str, frame: Frame) -> tuple[Rule, ...]:
        """The rules that may fit a frame, or what is inside it."""
        key = (direction, type(frame))
        rules = self._relevant.get(key)
        if rules is None:
            inside = frame.spec.inside
            kinds = [type(frame), *(inside.kinds() if inside is not None else ())]
            rules = tuple(r for r in self._rules if any(may_match(r, direction, kind) for kind in kinds))
            self._relevant[key] = rules
        return rules

    # frames

    def untouched(self, direction: str, frame: Frame, now: float) -> bool:
        """Whether nothing stands in this frame's way; then the caller may pass it on by itself."""
        if direction == "in":
            self._last_in = now
        else:
            self._last_out = now
        if self._idle_spent:  # else the timer finds out by itself that this has put it off
            self._idle_spent = False
            self._set_idle_timer()
        if self._rules and self._rules_for(direction, frame):
            return False
        if direction == "in":
            return self._in.idle
        return self._out.idle and not self.silenced_by

    def push(self, direction: str, frame: Frame, size: int, now: float, unit: Any = None) -> str | None:
        """Send a frame through the rules into its lane.

        Args:
            size: Bytes on the wire.
            unit: For ``out`` the frame's unit.

        Returns:
            The names of the faults that fired; None if none did and nothing else stands in the frame's
            way: then the caller passes it on by itself. After a FIN no fault fires and nothing leaves.
        """
        if self.lanes[direction].over:
            return ""
        offset = self.end.offset(direction)
        hits = []
        for rule in self._rules_for(direction, frame):
            level = self._level_of(rule, direction, frame)
            chosen = level is not None and self._decide(rule, direction, level, offset, size, now)
            if chosen:
                hits.append((rule, chosen, level is not frame))
        if direction == "out" and self.is_silent(frame.spec.role_in("out"), now):
            return self.silenced_by
        if not hits and self.lanes[direction].idle:
            return None
        parcels = [Parcel(frame=frame, unit=unit, size=size, items=all_items(frame))]
        for rule, chosen, inside in hits:
            act = partial(self._apply_rule, rule, direction, now=now, offset=offset)
            parcels = [opened(each) if inside else closed(each) for each in parcels]
            parcels = act(parcels) if chosen is True else apply_to_items(act, chosen, parcels)
        for parcel in parcels:
            self.put(direction, closed(parcel), now)
        return ",".join(rule.name for rule, _, _ in hits)

    def _level_of(self, rule: Rule, direction: str, frame: Frame) -> Frame | None:
        """The frame itself or the one inside it, whichever the rule may fit; None if neither."""
        if may_match(rule, direction, type(frame)):
            return frame
        assert frame.spec.inside is not None
        inner = frame.spec.inside.open(frame)
        return inner if inner is not None and may_match(rule, direction, type(inner)) else None

    def _decide(
        self, rule: Rule, direction: str, frame: Frame, offset: int, size: int, now: float
    ) -> bool | frozenset[int]:
        """Whether a rule fires for this frame; with unit ``item`` for which of its items."""
        match, spec = rule.fault.match, frame.spec
        state = rule.state(self.end.name, self.end.peer)
        if match.unit == "item" and spec.items is not None:
            return frozenset(
                index
                for index, of_item in enumerate(of_items(frame, direction, match.role))
                if of_item is not None
                and fields_fit(frame, match.where, of_item)
                and rule.decide(state, now, self._opened)
            )
        if match.byte is not None and not offset <= match.byte < offset + size:
            return False
        if not fields_fit(frame, match.where, of_frame(frame) if match.where else {}):
            return False
        return self._has_role(frame, match.role, direction) and rule.decide(state, now, self._opened)

    @staticmethod
    def _has_role(frame: Frame, role: Role | None, direction: str) -> bool:
        """Whether the frame, or one of its items, has the role."""
        spec = frame.spec
        if role is None or spec.items is None or not spec.items.mixed:
            return True  # the kind has it, or the rule would not be asked
        return any(part.role == role for part in parts_of(frame, spec, direction))

    def _apply_rule(
        self,
        rule: Rule,
        direction: str,
        parcels: list[Parcel],
        now: float,
        offset: int,
        *,
        moment: bool = False,
        effects: Sequence[Effect] = (),
    ) -> list[Parcel]:
        """Let a rule act; returns what goes on."""
        self.injector.took_place(rule, self.end.name)
        state = rule.state(self.end.name, self.end.peer)

        def run(effect: Effect, parcel: Parcel | None, out: list[Parcel]) -> None:
            effect.apply(PipePassage(self, rule, state, direction, parcel, now, offset, out))

        acts = effects or rule.fault.effects
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

    # moments and time

    def moment(self, moment: Moment, now: float) -> str:
        """A moment of the connection has come; returns the names of the faults that fired."""
        fired = []
        for rule in self._at_moments.get(moment, ()):
            if rule.decide(rule.state(self.end.name, self.end.peer), now, self._opened):
                self._apply_at_moment(rule, now)
                fired.append(rule.name)
        return ",".join(fired)

    def begin(self, rule: Rule, now: float) -> str:
        """The time of a fault has come; returns its name if it is about this connection."""
        effects = [effect for effect in rule.fault.effects if not isinstance(effect, EffectOnFake)]
        if not effects or not self._concerns(rule.fault.match):
            return ""
        self._apply_at_moment(rule, now, effects)
        return rule.name

    def _apply_at_moment(self, rule: Rule, now: float, effects: Sequence[Effect] = ()) -> None:
        """Let a rule act without a frame; `effects`: these of its effects alone."""
        direction = rule.direction or "out"
        offset = self.end.offset(direction)
        for parcel in self._apply_rule(rule, direction, [], now, offset, moment=True, effects=effects):
            self.put("out", parcel, now)

    def _idle_deadlines(self) -> Iterable[tuple[float, Rule]]:
        for rule in self._at_moments.get(Moment.IDLE, ()):
            since = self._silent_since(rule.direction)
            if self._idle_fired.get(rule.index) != since:  # once for each time of silence
                yield since + (rule.fault.match.after_s or 0.0), rule

    def _silent_since(self, direction: str) -> float:
        if direction == "in":
            return self._last_in
        return self._last_out if direction == "out" else max(self._last_in, self._last_out)

    def _set_idle_timer(self) -> None:
        if self._idle_timer is None:
            self._idle_timer = self.end.timer(self._look_for_silence)
        self._idle_timer.set(min((at for at, _ in self._idle_deadlines()), default=None))

    def _look_for_silence(self, now: float) -> None:
        """Fire what waits for silence."""
        fired = []
        for at, rule in tuple(self._idle_deadlines()):
            if at <= now:
                self._idle_fired[rule.index] = self._silent_since(rule.direction)
                self._idle_spent = True
                state = rule.state(self.end.name, self.end.peer)
                if rule.fault.match.position_fits(rule.count(state)) and rule.draw(state):
                    self._apply_at_moment(rule, now)
                    fired.append(rule.name)
        self._set_idle_timer()
        self.end.fired(",".join(fired), now)
