"""A fault at work: what it has counted, drawn and remembered."""

from __future__ import annotations

from hashlib import sha256
from random import Random
from typing import Any

import msgspec

from fakebrokers.faults.plan import Fault, made_up_name
from fakebrokers.faults.registry import effect_name
from fakebrokers.faults.toml import inline


class RuleState:
    """A rule's counter, random numbers and memory, for one connection or for the whole run."""

    __slots__ = ("count", "memory", "random", "sampled")

    def __init__(self, seed: str) -> None:
        self.count = 0
        self.random = Random(int.from_bytes(sha256(seed.encode()).digest()[:8], "big"))
        self.memory: dict[str, Any] = {}
        self.sampled: bool | None = None  #: the draw that counts for the whole connection

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
        self._scope = fault.scope
        self.seen = 0  #: how many frames, messages or moments fitted, chosen or not
        self.fired = 0
        self.added = added
        self._seed = seed
        self._states: dict[str, RuleState] = {}

    def state(self, connection: str, peer: str = "") -> RuleState:
        """The counters for this connection, for its peer, or for all, by the scope of the match."""
        match self._scope:
            case "connection":
                scope = connection
            case "peer":
                scope = f"peer {peer or connection}"
            case _:
                scope = "run"
        state = self._states.get(scope)
        if state is None:
            state = self._states[scope] = RuleState(f"{self._seed}/{self.name}/{scope}")
        return state

    def decide(self, state: RuleState, now: float, opened: float) -> bool:
        """Count one that fits and say whether the effect takes place."""
        match = self.fault.match
        if match.after_s is not None:
            since = opened if self._scope == "connection" else self.added
            if now - since < match.after_s:
                return False
        return match.position_fits(self.count(state)) and self.draw(state)

    def count(self, state: RuleState) -> int:
        """Count one more that fits; returns its number in its scope, from 1."""
        self.seen += 1
        return state.next_position()

    def draw(self, state: RuleState) -> bool:
        """Draw, if the match has a probability."""
        chance = self.fault.match.probability
        if chance is None:
            return True
        if self.fault.match.per == "frame":
            return state.random.random() < chance
        if state.sampled is None:
            state.sampled = state.random.random() < chance
        return state.sampled

    def forget(self, connection: str) -> None:
        """Drop the counters of a connection that has ended."""
        self._states.pop(connection, None)

    @property
    def by_chance(self) -> bool:
        """Whether it may well not take place although all that it needs came."""
        return self.fault.match.probability is not None

    @property
    def idleness(self) -> str:
        """That it never took place, and how close it came."""
        return f"the fault {self.name!r} never took place: {self._fitted} ({_match_text(self.fault)})"

    @property
    def _fitted(self) -> str:
        return f"{self.seen} matched" if self.seen else "no frame matched"

    def __str__(self) -> str:
        acts = " + ".join(effect_name(effect) for effect in self.fault.effects)
        times = f"took place {self.fired} x" if self.fired else "never took place"
        return f"{self.name}: {acts} ({_match_text(self.fault)}); {times}, {self._fitted}"


def _match_text(fault: Fault) -> str:
    """What has to fit, as it stands in a plan."""
    given = msgspec.to_builtins(fault.match)
    return ", ".join(f"{name} = {inline(value)}" for name, value in given.items()) or "everything matches"
