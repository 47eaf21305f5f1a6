"""The faults of one fake: rules with their counters, and what a test says to them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from fakebrokers.core.wire import Wire
from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect
from fakebrokers.faults.levels import names_of_items
from fakebrokers.faults.match import OF_ITEMS
from fakebrokers.faults.plan import Fault, Plan, made_up_name
from fakebrokers.faults.registry import check_effect, effect_name
from fakebrokers.faults.toml import inline
from fakebrokers.reading import one_of

if TYPE_CHECKING:
    from fakebrokers.faults.pipe import Pipe
    from fakebrokers.faults.timetable import Timetable


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
        return f"{self.seen} fitted it" if self.seen else "nothing fitted it"

    def __str__(self) -> str:
        acts = " + ".join(effect_name(effect) for effect in self.fault.effects)
        times = f"took place {self.fired} x" if self.fired else "never took place"
        return f"{self.name}: {acts} ({_match_text(self.fault)}); {times}, {self._fitted}"


def _match_text(fault: Fault) -> str:
    """What has to fit, as it stands in a plan."""
    given = msgspec.to_builtins(fault.match)
    return ", ".join(f"{name} = {inline(value)}" for name, value in given.items()) or "everything fits"


class Injector:
    """What a fake's fault plan is, now.

    Args:
        wires: What its connections speak; a fault must make sense on one of them.
        own: The effects that only this protocol has.
        protocol: Its name, for messages.
        plan: What to start with.

    Attributes:
        rules: The faults at work, in the order in which they act.
        waiting: Those whose time has not come.
        timetable: Sees to faults that have a time of their own; without one they wait.
        ever: All rules that were ever added, those that were taken out too.
        hidden: Rules at work that no test gets to see, see `hide`.
        pipes: Where they work, by connection; told when the plan changes.
        listener: Called each time a fault takes place, with its name and that of the connection; "" for none.
    """

    def __init__(
        self,
        wires: Sequence[Wire],
        *,
        own: Iterable[type[Effect]] = (),
        protocol: str = "this fake",
        plan: Plan | None = None,
    ) -> None:
        plan = plan or Plan()
        self.seed = plan.seed
        self.rules: list[Rule] = []
        self.waiting: list[Rule] = []
        self.timetable: Timetable | None = None
        self._by_name: dict[str, Rule] = {}
        self.ever: list[Rule] = []
        self.hidden: list[Rule] = []
        self.pipes: dict[str, Pipe] = {}
        self.listener: Callable[[str, str], None] | None = None
        self._wires = tuple(wires)
        self._own = dict.fromkeys(own)
        self._protocol = protocol
        self._numbered = 0
        self.add(plan.faults, path="faults")

    def add(self, faults: Sequence[Fault], now: float = 0.0, path: str = "") -> list[str]:
        """Add faults, all or none; returns their names.

        Raises:
            PlanError: One makes no sense, or this wire cannot have it.
        """
        rules = [Rule(fault, self._numbered + i, self.seed, now) for i, fault in enumerate(faults)]
        names: dict[str, Rule] = {}
        for number, rule in enumerate(rules):
            where = f"{path}[{number}]" if path else rule.name
            self.check(rule.fault, where)
            if rule.name in names or rule.name in self._by_name:
                raise PlanError(
                    f"{where}.name", f"expected a name of its own, got {rule.name!r} a second time"
                )
            names[rule.name] = rule
        self._numbered += len(rules)
        self._by_name |= names
        self.ever += rules
        at_once = [rule for rule in rules if not rule.fault.match.is_timed]
        self.rules += at_once
        for pipe in self.pipes.values():
            pipe.extend(at_once)
        self.waiting += [rule for rule in rules if rule.fault.match.is_timed]
        if self.timetable is not None:
            self.timetable.take(now)
        return list(names)

    def took_place(self, rule: Rule, connection: str) -> None:
        """Count that a rule fires."""
        rule.fired += 1
        if self.listener is not None:
            self.listener(rule.name, connection)

    def begin(self, rule: Rule) -> None:
        """The time of a fault has come."""
        self.waiting.remove(rule)
        insort(self.rules, rule, key=lambda each: each.index)
        self._tell_pipes()

    @property
    def at_work(self) -> list[Rule]:
        """The rules that act, in their order."""
        return [*self.rules, *self.hidden]

    def hide(self, faults: Sequence[Fault], now: float) -> list[Rule]:
        """Let these faults act, in place of those of the last call, where no test sees or removes them.

        Returns:
            Their rules.

        Raises:
            PlanError: One makes no sense, or this wire cannot have it.
        """
        for fault in faults:
            self.check(fault, fault.name)
        self.hidden = [Rule(fault, -1 - i, self.seed, now) for i, fault in enumerate(faults)]
        self._tell_pipes()
        return self.hidden

    def started(self, now: float) -> None:
        """The fake starts: ``after_s`` of the whole run counts from here."""
        for rule in (*self.at_work, *self.waiting):
            rule.added = now

    def check(self, fault: Fault, path: str) -> None:
        """Raise `PlanError` where no wire of this fake can have the fault: that of the first one."""
        fault.check(path)
        for effect, where in fault.placed_effects(path):
            check_effect(effect, self._own, self._protocol, where)
        problems = []
        for wire in self._wires:
            try:
                _check_wire(fault, wire, path)
                return
            except PlanError as error:
                problems.append(error)
        raise problems[0]

    # rules at work

    def find(self, name: str) -> Rule:
        """The rule of that name; `PlanError` with the names there are."""
        if name in self._by_name:
            return self._by_name[name]
        names = ", ".join(self._by_name) or "none"
        raise PlanError("name", f"expected a fault that is at work ({names}), got {name!r}")

    def find_ever(self, name: str) -> Rule:
        """The rule of that name, though it may have been taken out; the newest one."""
        return next((rule for rule in reversed(self.ever) if rule.name == name), None) or self.find(name)

    def remove(self, name: str) -> None:
        """Take a fault out. What it holds back has to be released before."""
        rule = self.find(name)
        (self.waiting if rule in self.waiting else self.rules).remove(rule)
        del self._by_name[name]
        self._tell_pipes()

    def clear(self) -> None:
        """Take all faults out."""
        self.rules.clear()
        self.waiting.clear()
        self._by_name.clear()
        self._tell_pipes()

    def reset(self) -> None:
        """Forget all faults that ever were; the next one without a name is the first again."""
        self.ever.clear()
        self._numbered = 0
        self.clear()

    def forget(self, connection: str) -> None:
        """Drop what is kept of a connection that has ended."""
        self.pipes.pop(connection, None)
        for rule in self.at_work:
            rule.forget(connection)

    def _tell_pipes(self) -> None:
        for pipe in self.pipes.values():
            pipe.refresh()

    def names(self) -> Iterable[str]:
        """Names of the faults at work."""
        return list(self._by_name)


def _check_wire(fault: Fault, wire: Wire, path: str) -> None:
    match = fault.match
    asked = (match.kind, match.role, f"{path}.match", fault.direction)
    if match.where:
        known = wire.fields_of(*asked) | names_of_items(wire.meant(*asked))
        for name in match.where:
            if name not in known and name.split(".")[0] not in known - {*OF_ITEMS}:
                raise PlanError(f"{path}.match.where.{name}", f"expected {one_of(sorted(known), name)}")
    elif match.on is None:
        wire.meant(*asked)
    for effect, where in fault.placed_effects(path):
        effect.check_wire(wire, match, where)
