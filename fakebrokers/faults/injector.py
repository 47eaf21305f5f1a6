"""The faults of one fake: rules with their counters, and what a test says to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from random import Random
from typing import Any

import msgspec

from fakebrokers.errors import PlanError
from fakebrokers.faults.plan import Fault, Plan
from fakebrokers.frames import MALFORMED_SPEC, Frame, FrameSpec, FrameTable


class RuleState:
    """A rule's counter, dice and memory, for one connection or for the whole run."""

    __slots__ = ("count", "memory", "random")

    def __init__(self, seed: str) -> None:
        self.count = 0
        self.random = Random(int.from_bytes(sha256(seed.encode()).digest()[:8], "big"))
        self.memory: dict[str, Any] = {}

    def next_position(self) -> int:
        """Count one more that fits; returns its number, from 1."""
        self.count += 1
        return self.count


class Rule:
    """A fault at work."""

    def __init__(self, fault: Fault, index: int, seed: int, added: float) -> None:
        self.fault = fault
        self.index = index
        self.name = fault.name or f"fault {index + 1}"
        self.direction = fault.direction
        self.fired = 0
        self._seed = seed
        self._added = added
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
            since = self._added if match.scope == "run" else opened
            if now - since < match.after_s:
                return False
        return match.position_fits(state.next_position()) and self.draw(state)

    def draw(self, state: RuleState) -> bool:
        """Roll the dice, if the match has a probability."""
        chance = self.fault.match.probability
        return chance is None or state.random.random() < chance


class Injector:
    """What a fake's fault plan is, now.

    Args:
        frames: The protocol's frame table; kinds are checked against it.
        stream: Whether the wire is a byte stream that the fake writes itself.
        plan: What to start with.
    """

    def __init__(self, frames: FrameTable, *, stream: bool, plan: Plan | None = None) -> None:
        plan = plan or Plan()
        self.seed = plan.seed
        self.rules: list[Rule] = []
        self.history: list[Fault] = []
        self.generation = 0
        self.on_request: Callable[[str, str, Mapping[str, Any]], None] | None = None
        self._frames = frames
        self._kinds = {kind.__name__ for kind in frames} | {"Malformed"}
        self._stream = stream
        self._added = 0
        for number, fault in enumerate(plan.faults):
            self.add(fault, path=f"faults[{number}]")

    def spec(self, frame: Frame) -> FrameSpec:
        """The frame's row in the protocol's table."""
        return self._frames.get(type(frame), MALFORMED_SPEC)

    def add(self, fault: Fault, now: float = 0.0, path: str = "fault") -> str:
        """Put a fault to work; returns its name. `PlanError` if this wire cannot do it."""
        fault.check(path)
        kind = fault.match.kind
        if kind is not None and kind not in self._kinds:
            raise PlanError(
                f"{path}.match.kind", f"expected one of {', '.join(sorted(self._kinds))}, got {kind!r}"
            )
        if not self._stream:
            for effect in fault.effects:
                if effect.needs_bytes:
                    raise PlanError(
                        f"{path}.effect",
                        f'"{effect.__struct_config__.tag}" works on bytes, but a library owns this wire: '
                        "put the byte proxy in front of it",
                    )
        rule = Rule(fault, self._added, self.seed, now)
        if any(r.name == rule.name for r in self.rules):
            raise PlanError(f"{path}.name", f"expected a name of its own, got {rule.name!r} a second time")
        self._added += 1
        self.rules.append(rule)
        self.history.append(fault)
        self.generation += 1
        return rule.name

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

    def names(self) -> Iterable[str]:
        """Names of the faults at work."""
        return [rule.name for rule in self.rules]

    def build(self, kind: str, fields: Mapping[str, Any], fault: str) -> Frame:
        """A frame of that kind from plain values; `PlanError` with the fields it has."""
        for cls in self._frames:
            if cls.__name__ == kind:
                try:
                    return msgspec.convert(dict(fields), cls)
                except msgspec.ValidationError as error:
                    names = ", ".join(cls.__struct_fields__) or "none"
                    raise PlanError(f"{fault}: {kind}", f"{error}; its fields: {names}") from None
        raise PlanError(f"{fault}: kind", f"expected one of {', '.join(sorted(self._kinds))}, got {kind!r}")

    def request(self, action: str, fault: str, arguments: Mapping[str, Any]) -> None:
        """An effect wants something of the whole fake (crash, refuse ...)."""
        if self.on_request is not None:
            self.on_request(action, fault, arguments)
