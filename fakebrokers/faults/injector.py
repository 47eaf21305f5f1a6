"""The faults of one fake: rules with their counters, and what a test says to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from random import Random
from typing import Any

import msgspec

from fakebrokers.core.frames import MALFORMED_SPEC, Frame, FrameSpec, FrameTable, Malformed, Role, kind_of
from fakebrokers.errors import PlanError
from fakebrokers.faults.plan import Fault, Plan, made_up_name
from fakebrokers.faults.read import field_value, one_of


class RuleState:
    """A rule's counter, dice and memory, for one connection or for the whole run."""

    __slots__ = ("count", "lucky", "memory", "random")

    def __init__(self, seed: str) -> None:
        self.count = 0
        self.random = Random(int.from_bytes(sha256(seed.encode()).digest()[:8], "big"))
        self.memory: dict[str, Any] = {}
        self.lucky: bool | None = None  #: the throw that counts for the whole connection

    def next_position(self) -> int:
        """Count one more that fits; returns its number, from 1."""
        self.count += 1
        return self.count


class Rule:
    """A fault at work."""

    def __init__(self, fault: Fault, index: int, seed: int, added: float) -> None:
        self.fault = fault
        self.index = index
        self.name = fault.name or made_up_name(index)
        self.direction = fault.direction
        self.fired = 0
        self.added = added
        self._seed = seed
        self._states: dict[str, RuleState] = {}

    def state(self, connection: str) -> RuleState:
        """The counters for this connection (scope ``run``: the same for all)."""
        scope = connection if self.fault.match.scope == "connection" else "run"
        state = self._states.get(scope)
        if state is None:
            state = self._states[scope] = RuleState(f"{self._seed}/{self.name}/{scope}")
        return state

    def decide(self, state: RuleState, now: float, opened: float) -> bool:
        """Count one that fits and say whether the effect takes place."""
        match = self.fault.match
        if match.after_s is not None:
            since = self.added if match.scope == "run" else opened
            if now - since < match.after_s:
                return False
        return match.position_fits(state.next_position()) and self.draw(state)

    def draw(self, state: RuleState) -> bool:
        """Roll the dice, if the match has a probability."""
        chance = self.fault.match.probability
        if chance is None:
            return True
        if self.fault.match.per == "frame":
            return state.random.random() < chance
        if state.lucky is None:
            state.lucky = state.random.random() < chance
        return state.lucky

    def forget(self, connection: str) -> None:
        """The connection is gone for good."""
        self._states.pop(connection, None)


class Injector:
    """What a fake's fault plan is, now. Implements `effect.Wire`.

    Args:
        frames: The protocol's frame table; kinds are checked against it.
        stream: Whether the wire is a byte stream that the fake writes itself.
        plan: What to start with.
    """

    def __init__(self, frames: FrameTable, *, stream: bool, plan: Plan | None = None) -> None:
        plan = plan or Plan()
        self.seed = plan.seed
        self.stream = stream
        self.rules: list[Rule] = []
        self.ever: list[Rule] = []  #: all that were ever added, those that were taken out too
        self.generation = 0
        self.on_request: Callable[[str, str, str, Mapping[str, Any]], None] | None = None
        self._frames: dict[type[Frame], FrameSpec] = {Malformed: MALFORMED_SPEC, **frames}
        self._numbered = 0
        self.add(plan.faults, path="faults")

    def spec(self, frame: Frame) -> FrameSpec:
        """The frame's row in the protocol's table."""
        return self._frames.get(type(frame), MALFORMED_SPEC)

    def add(self, faults: Sequence[Fault], now: float = 0.0, path: str = "") -> list[str]:
        """Put faults to work, all or none; returns their names.

        Raises:
            PlanError: One makes no sense, or this wire cannot have it.
        """
        rules = [Rule(fault, self._numbered + i, self.seed, now) for i, fault in enumerate(faults)]
        names = {rule.name for rule in self.rules}
        for number, rule in enumerate(rules):
            where = f"{path}[{number}]" if path else rule.name
            self._check(rule.fault, where)
            if rule.name in names:
                raise PlanError(
                    f"{where}.name", f"expected a name of its own, got {rule.name!r} a second time"
                )
            names.add(rule.name)
        self._numbered += len(rules)
        self.rules += rules
        self.ever += rules
        self.generation += 1
        return [rule.name for rule in rules]

    def started(self, now: float) -> None:
        """The fake starts: ``after_s`` of the whole run counts from here."""
        for rule in self.rules:
            rule.added = now

    # effect.Wire: what there is to match

    def _check(self, fault: Fault, path: str) -> None:
        fault.check(path)
        match = fault.match
        known = self.fields_of(match.kind, match.role, f"{path}.match")
        for name in match.where:
            if name != "key" and name.split(".")[0] not in known:
                raise PlanError(f"{path}.match.where.{name}", f"expected {one_of(sorted(known), name)}")
        for effect, where in fault.placed_effects(path):
            effect.check_wire(self, match, where)

    def fields_of(self, kind: str | None, role: Role | None, path: str) -> frozenset[str]:
        """The fields of all frames of that kind and role; `PlanError` if there is no such frame."""
        kinds = {kind_of(each): each for each in self._frames}
        if kind is not None and kind not in kinds:
            raise PlanError(f"{path}.kind", f"expected {one_of(sorted(kinds), kind)}")
        meant = [each for name, each in kinds.items() if kind in (None, name)]
        roles = frozenset[Role]().union(*(self._frames[each].roles_in("") for each in meant))
        if role is not None and role not in roles:
            there = sorted(roles)
            raise PlanError(f"{path}.role", f"expected {one_of(there, role)}: this is what there is here")
        return frozenset(
            field
            for each in meant
            if role is None or role in self._frames[each].roles_in("")
            for field in (*each.__struct_fields__, *_properties(each))
        )

    def build(self, kind: str, fields: Mapping[str, Any], path: str) -> Frame:
        """A frame of that kind from plain values; `PlanError` with the fields it has."""
        kinds = {kind_of(each): each for each in self._frames}
        if kind not in kinds:
            raise PlanError(f"{path}.kind", f"expected {one_of(sorted(kinds), kind)}")
        known = {field.name: field for field in msgspec.structs.fields(kinds[kind])}
        values = {}
        for name, value in fields.items():
            if name not in known:
                raise PlanError(f"{path}.fields.{name}", f"expected {one_of(list(known), name)}")
            try:
                values[name] = field_value(value, known[name].type)
            except msgspec.ValidationError as error:
                raise PlanError(f"{path}.fields.{name}", f"{error}: {value!r}") from None
        missing = [name for name, field in known.items() if field.required and name not in values]
        if missing:
            raise PlanError(f"{path}.fields.{missing[0]}", f"expected a value for {kind}, got nothing")
        return kinds[kind](**values)

    # rules at work

    def find(self, name: str) -> Rule:
        """The rule of that name; `PlanError` with the names there are."""
        for rule in self.rules:
            if rule.name == name:
                return rule
        names = ", ".join(r.name for r in self.rules) or "none"
        raise PlanError("name", f"expected a fault that is at work ({names}), got {name!r}")

    def remove(self, name: str) -> None:
        """Take a fault out. What it holds back has to be released before."""
        self.rules.remove(self.find(name))
        self.generation += 1

    def clear(self) -> None:
        """Take all faults out."""
        self.rules.clear()
        self.generation += 1

    def forget(self, connection: str) -> None:
        """A connection is gone for good."""
        for rule in self.rules:
            rule.forget(connection)

    def names(self) -> Iterable[str]:
        """Names of the faults at work."""
        return [rule.name for rule in self.rules]

    def request(self, action: str, fault: str, connection: str, arguments: Mapping[str, Any]) -> None:
        """An effect wants something of the whole fake (crash, refuse ...)."""
        if self.on_request is not None:
            self.on_request(action, fault, connection, arguments)


def _properties(kind: type[Frame]) -> list[str]:
    return [name for name in dir(kind) if isinstance(getattr(kind, name), property)]
