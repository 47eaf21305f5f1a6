"""The fakes that live in a test, whoever made them, and what they saw of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from fakebrokers.core import life
from fakebrokers.description import Description
from fakebrokers.errors import PlanError
from fakebrokers.faults import Fault
from fakebrokers.faults.rule import Rule
from fakebrokers.journal import Record, Tap
from fakebrokers.journal.record import State
from fakebrokers.mutate.behaviours import Behaviour
from fakebrokers.mutate.possible import behaviours_of
from fakebrokers.protocol import find_protocol
from fakebrokers.server import FakeServer

#: Lines of the journal that show where a behaviour took place, at most.
LINES = 3
#: A behaviour of a protocol, by the names of both.
Key = tuple[str, str]


class Lives:
    """The fakes of one test after the other.

    Args:
        behaviour: What the fakes do wrong, of `protocol`; None: nothing.

    All fakes are `exact`, so that tests run with and without faults differ in nothing else.
    """

    def __init__(self, protocol: str = "", behaviour: Behaviour | None = None) -> None:
        self._protocol = protocol
        self._behaviour = behaviour
        self._since: dict[FakeServer, int] = {}
        self._rules: list[Rule] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note the fakes that start."""
        life.on_start.append(self._started)
        try:
            yield
        finally:
            life.on_start.remove(self._started)

    def begin(self) -> None:
        """A test begins; some fakes may run already."""
        self._rules.clear()
        self._since.clear()
        for fake in life.all_started():
            if isinstance(fake, FakeServer) and fake.runs:
                self._started(fake)

    def _started(self, fake: life.Living) -> None:
        if not isinstance(fake, FakeServer):
            return
        self._since.setdefault(fake, fake.journal.last_seq)
        fake._always_exact = True
        if self._behaviour is not None and fake.protocol.name == self._protocol:
            try:
                self._rules += fake.call(fake.engine.injector.hide, [self._behaviour.fault], fake.engine.now)
            except PlanError:  # this fake speaks another wire of its protocol
                return

    def journals(self) -> list[tuple[FakeServer, list[Record]]]:
        """The fakes of the test, with what they saw of it so far."""
        return [(fake, fake.journal.records(since)) for fake, since in self._since.items()]

    def took_place(self) -> list[str] | None:
        """The lines of the journal in which the behaviour took place; None if it did not."""
        behaviour = self._behaviour
        if behaviour is None or not any(rule.fired for rule in self._rules):
            return None
        touched = [r for _, records in self._journals() for r in _touched(records, behaviour.name)]
        if behaviour.swaps and not _is_swapped(touched):
            return None
        return [str(record) for record in touched[:LINES]]

    def meets(self) -> Iterator[Key]:
        """The behaviours that the fakes of the test would have shown it."""
        for fake, records in self._journals():
            shapes = _shapes(records)
            for each in _known(fake.protocol):
                if _is_met(each, shapes):
                    yield fake.protocol.name, each.name

    def brings_about(self) -> Iterator[Key]:
        """The behaviours that the test's own faults have brought about."""
        for fake, records in self._journals():
            for rule in fake.engine.injector.ever:
                shapes = _shapes(_touched(records, rule.name))
                for each in _known(fake.protocol) if rule.fired else ():
                    if _is_alike(rule.fault, each, shapes):
                        yield fake.protocol.name, each.name

    def _journals(self) -> list[tuple[FakeServer, list[Record]]]:
        """The fakes of the test, with what they saw of it so far."""
        return [(fake, fake.journal.records(since)) for fake, since in self._since.items()]


_behaviours: dict[str, list[Behaviour]] = {}


def _known(protocol: Description) -> list[Behaviour]:
    if protocol.name not in _behaviours:
        _behaviours[protocol.name] = behaviours_of(protocol)
    return _behaviours[protocol.name]


def find_behaviour(protocol: str, name: str) -> Behaviour | None:
    """The behaviour of that name; None for no protocol."""
    known = _known(find_protocol(protocol)) if protocol else []
    return next((each for each in known if each.name == name), None)


class _Shape(NamedTuple):
    """What decides whether a record may fit a match."""

    connection: str
    direction: str
    kind: str
    roles: tuple[str, ...]


def _touched(records: Iterable[Record], fault: str) -> list[Record]:
    """Those that a fault has touched."""
    return [record for record in records if fault in record.fault.split(",")]


def _is_swapped(touched: Iterable[Record]) -> bool:
    """Whether frames left in another order than that in which they were said."""
    said, sent = ([each.keys for each in touched if each.tap & tap] for tap in (Tap.SAID, Tap.SENT))
    return sent != said[: len(sent)]


def _shapes(records: Iterable[Record]) -> Counter[_Shape]:
    """How often each shape is there."""
    return Counter(map(_shape_of, records))


def _shape_of(record: Record) -> _Shape:
    roles = tuple(part.role for part in record.parts) or (record.role,)
    return _Shape(record.connection, record.tap.direction, record.kind, roles)


def _is_alike(own: Fault, behaviour: Behaviour, shapes: Counter[_Shape]) -> bool:
    """Whether a test's own fault has done what a behaviour is.

    Args:
        shapes: Of what it has touched.
    """
    on = behaviour.fault.match.on
    if own.match.on != on or [*map(type, own.effects)] != [*map(type, behaviour.fault.effects)]:
        return False
    return on is not None or _is_met(behaviour, shapes)


def _is_met(behaviour: Behaviour, shapes: Counter[_Shape]) -> bool:
    """Whether some connection had as many frames as the behaviour needs."""
    counts: Counter[str] = Counter()
    for shape, count in shapes.items():
        if _fits(shape, behaviour.fault):
            counts[shape.connection] += count
    return max(counts.values(), default=0) >= behaviour.least


def _fits(shape: _Shape, fault: Fault) -> bool:
    match = fault.match
    if match.on is not None:  # whether its moment came shows when it takes place
        return shape.kind == State.ACCEPTED
    return (
        shape.direction != ""
        and fault.direction in ("", shape.direction)
        and match.kind in (None, shape.kind)
        and (match.role is None or match.role in shape.roles)
    )
