"""What a test says to the faults of a fake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from fakebrokers.core.engine import Engine
from fakebrokers.description import Description
from fakebrokers.errors import PlanError, UnmetExpectation
from fakebrokers.faults.near import near_miss
from fakebrokers.faults.plan import Fault, Plan, PlanSource, fault_from, load_plan
from fakebrokers.faults.rule import Rule
from fakebrokers.faults.timetable import Timetable
from fakebrokers.reading import shown

T = TypeVar("T")


class _Server(Protocol):
    engine: Engine
    protocol: Description

    def call(self, act: Callable[..., T], *arguments: Any) -> T: ...


class FaultControl:
    """The faults of a running fake: ``broker.faults``. Safe from any thread."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._injector = server.engine.injector
        self._injector.timetable = Timetable(server.engine)

    def __repr__(self) -> str:
        return f"<faults: {'; '.join(self.counts) or 'none'}>"

    def add(self, *faults: Fault | Mapping[str, Any]) -> str:
        """Add faults, as such or as their tables, all or none; returns the name of the last one.

        Raises:
            PlanError: where one makes no sense, or this protocol's wire cannot do it.
        """
        given = [self._fault(each, f"faults[{number}]") for number, each in enumerate(faults)]
        names = self._server.call(self._add, given)
        return names[-1] if names else ""

    def _fault(self, given: Fault | Mapping[str, Any], path: str) -> Fault:
        if isinstance(given, Fault | Mapping):
            return fault_from(given, path, self._server.protocol)
        hints = {Plan: "a plan is for load()", list: "several are given one by one"}
        hint = hints.get(type(given), f"got {shown(given)}")
        raise PlanError(path, f"expected a fault such as drop(), or its table; {hint}")

    def _add(self, faults: Sequence[Fault], path: str = "") -> list[str]:
        return self._injector.add(faults, self._server.engine.now, path)

    def load(self, plan: PlanSource) -> None:
        """Add all faults of a plan, and take over its seed."""
        loaded = load_plan(plan, self._server.protocol)

        def act() -> None:
            seed, self._injector.seed = self._injector.seed, loaded.seed
            try:
                self._add(loaded.faults, "faults")
            except PlanError:
                self._injector.seed = seed
                raise

        self._server.call(act)

    def remove(self, name: str) -> None:
        """Take a fault out, and let go what it holds back."""

        def act() -> None:
            self._release(name)
            self._injector.remove(name)

        self._server.call(act)

    def clear(self) -> None:
        """Take all faults out, and let go what they hold back."""

        def act() -> None:
            for name in tuple(self._injector.names()):
                self._release(name)
            self._injector.clear()

        self._server.call(act)

    def release(self, name: str) -> None:
        """Let go what a fault holds back: parked frames, silence, a stall, closed listeners."""
        self._server.call(self._release, name)

    def _release(self, name: str) -> None:
        self._server.engine.release(name, self._server.engine.now)

    def fired(self, name: str) -> int:
        """How often a fault took place."""
        return self._injector.find(name).fired

    def seen(self, name: str) -> int:
        """How many frames (messages, moments) a fault has met that fit it, chosen or not."""
        return self._injector.find(name).seen

    def forget(self) -> None:
        """`clear`, and as if none had ever been added."""
        self.clear()
        self._server.call(self._injector.reset)

    @property
    def unfired(self) -> tuple[str, ...]:
        """The faults that were ever added, those that were taken out too, and never took place."""
        return tuple(rule.name for rule in self._injector.ever if not rule.fired)

    def check(self, *names: str) -> None:
        """Make sure that faults have taken place: a test whose fault never did has tested nothing.

        Args:
            names: Which ones; none: all that were ever added, but for those that leave it to chance
                (``probability``).

        Raises:
            UnmetExpectation: Some never did; with how many frames have fitted each, or what came closest.
            PlanError: There never was a fault of that name.
        """
        rules = [self._injector.find_ever(name) for name in names] or [
            rule for rule in self._injector.ever if not rule.by_chance
        ]
        if idle := [rule for rule in rules if not rule.fired]:
            raise UnmetExpectation("\n".join(map(self._idleness, idle)))

    def _idleness(self, rule: Rule) -> str:
        near = self._near_miss(rule)
        return f"{rule.idleness}; {near}" if near else rule.idleness

    def near_miss(self, name: str) -> str:
        """What came closest to a fault that fitted nothing: a sentence such as ``closest: record 14, ...:
        publisher_id is 1, not 0``; "" if it fitted something, or nothing was close.

        Raises:
            PlanError: There never was a fault of that name.
        """
        return self._near_miss(self._injector.find_ever(name))

    def _near_miss(self, rule: Rule) -> str:
        journal = self._server.engine.journal
        return near_miss(rule, journal.records(), journal.started_at)

    @property
    def counts(self) -> list[str]:
        """A line for each fault that was ever added: what it does, and how often it did."""
        return [str(rule) for rule in self._injector.ever]

    @property
    def plan(self) -> Plan:
        """Seed and all faults that were ever added, as a plan that can be written down and loaded again."""
        return Plan(seed=self._injector.seed, faults=tuple(rule.fault for rule in self._injector.ever))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The faults at work with what they have counted; look, do not touch."""
        return tuple(self._injector.rules)

    @property
    def names(self) -> tuple[str, ...]:
        """The faults at work, and those whose time has not come, in the order in which they were added."""
        return tuple(self._injector.names())
