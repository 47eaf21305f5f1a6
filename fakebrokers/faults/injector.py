"""The faults of one fake: its rules, and what a test says to them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from fakebrokers.core.wire import Wire
from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect
from fakebrokers.faults.levels import names_of_items
from fakebrokers.faults.match import OF_ITEMS
from fakebrokers.faults.plan import Fault, Plan
from fakebrokers.faults.registry import check_effect
from fakebrokers.faults.rule import Rule
from fakebrokers.reading import one_of

#: Called with the name of a fault when it begins, before it acts (True), and when it is over (False).
Observer = Callable[[str, bool], None]


class Place(Protocol):
    """Where rules work, see `pipe.Pipe`."""

    def extend(self, rules: Iterable[Rule]) -> None:
        """The plan has more rules."""

    def refresh(self) -> None:
        """The plan has changed."""


class Scheduler(Protocol):
    """Who sees to faults that have a time of their own, see `timetable.Timetable`.

    Attributes:
        observer: See `Observer`.
    """

    observer: Observer | None

    def start(self, now: float) -> None:
        """The fake begins to serve: time counts from here."""

    def take(self, now: float) -> None:
        """See to the faults that wait; before the fake serves none does."""


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
        self.timetable: Scheduler | None = None
        self._by_name: dict[str, Rule] = {}
        self.ever: list[Rule] = []
        self.hidden: list[Rule] = []
        self.pipes: dict[str, Place] = {}
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
