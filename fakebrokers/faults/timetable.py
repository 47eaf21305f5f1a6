"""Faults that have a time of their own: when they begin, and when they are over; see `Match.from_s`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fakebrokers.core.timers import Timers
from fakebrokers.faults.effect import Action, EffectOnFake
from fakebrokers.faults.injector import Injector, Observer
from fakebrokers.faults.match import Moment
from fakebrokers.faults.rule import Rule


class TimedFake(Protocol):
    """What the timetable needs of its engine."""

    injector: Injector
    timers: Timers

    def perform(self, action: Action, fault: str, connection: str) -> None: ...

    def begin(self, rule: Rule, now: float) -> None:
        """Let a fault whose time has come act at the connections that are open."""

    def release(self, name: str, now: float) -> None:
        """Let go what a fault holds back, and undo what it did."""


class Timetable:
    """See the module's text; implements `injector.Scheduler`.

    Attributes:
        observer: See `injector.Observer`.
    """

    def __init__(self, fake: TimedFake) -> None:
        self._fake = fake
        self._is_running = False
        self._known: set[Rule] = set()
        self.observer: Observer | None = None

    def start(self, now: float) -> None:
        """The fake begins to serve: time counts from here."""
        self._is_running = True
        self._known.clear()
        self.take(now)

    def take(self, now: float) -> None:
        """See to the faults that wait; before the fake serves none does."""
        if not self._is_running:
            return
        for rule in tuple(self._fake.injector.waiting):
            if rule.fault.match.from_s <= 0:
                self._begin(rule, now)
            elif rule not in self._known:
                self._known.add(rule)
                self._at(rule.added + rule.fault.match.from_s, self._begin, rule)

    def _at(self, when: float, act: Callable[[Rule, float], None], rule: Rule) -> None:
        self._fake.timers.new(lambda now: act(rule, now)).set(when)

    def _begin(self, rule: Rule, now: float) -> None:
        if rule not in self._fake.injector.waiting:  # taken out meanwhile
            return
        match = rule.fault.match
        if self.observer is not None:
            self.observer(rule.name, True)
        self._fake.injector.begin(rule)
        if match.until_s is not None:
            self._at(rule.added + match.until_s, self._end, rule)
        if match.on is Moment.BEGIN and rule.draw(rule.state("")):
            self._fake.begin(rule, now)
            for effect in rule.fault.effects:
                if isinstance(effect, EffectOnFake):
                    self._fake.injector.took_place(rule, "")
                    self._fake.perform(effect.action(), rule.name, "")

    def _end(self, rule: Rule, now: float) -> None:
        if rule not in self._fake.injector.rules:
            return
        self._fake.release(rule.name, now)
        self._fake.injector.remove(rule.name)
        if self.observer is not None:
            self.observer(rule.name, False)
