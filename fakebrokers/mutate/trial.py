"""Which tests run again with which behaviour, and what follows from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from fakebrokers.errors import UsageError, instead_of
from fakebrokers.mutate.behaviours import Behaviour
from fakebrokers.mutate.lives import Key
from fakebrokers.mutate.possible import behaviours_of
from fakebrokers.mutate.reruns import Order, Ran
from fakebrokers.protocol import find_protocol

#: How many times the seconds that a test took it may take with a misbehaving broker.
TIMES = 10
#: How many times the CPU of the plain run all reruns may take together. Where that is not enough for all
#: tests that meet a behaviour, only the first of them run.
BUDGET = 8


class Plain(msgspec.Struct):
    """A test in the plain run.

    Attributes:
        number: Its place in the session.
        name: Its node id.
        why_not: Why it is left out; "" if it is not.
        seconds: How long it took.
        cpu_s: How much CPU, in all threads.
        meets: The behaviours that its fakes would have shown it.
        brings_about: Those that its own faults have shown it.
    """

    number: int
    name: str
    why_not: str = ""
    seconds: float = 0.0
    cpu_s: float = 0.0
    meets: frozenset[Key] = frozenset()
    brings_about: frozenset[Key] = frozenset()


class Verdict(StrEnum):
    """What a project's tests know of a behaviour."""

    NOTICED = "noticed"  #: a test failed
    TIMEOUT = "time-out"  #: a test still waited when its time was over
    OWN = "own fault"  #: a test that passes brings it about itself
    UNNOTICED = "unnoticed"  #: it took place, and every test passed
    NOT_MET = "not met"  #: no test has the frames for it, or it took place in none


#: What counts as noticed.
GOOD = (Verdict.NOTICED, Verdict.TIMEOUT, Verdict.OWN)


class Place(msgspec.Struct, frozen=True):
    """Where a behaviour took place: the test, and the lines of the journal."""

    test: str
    lines: list[str]


class Row(msgspec.Struct, frozen=True):
    """What became of a behaviour.

    Attributes:
        about: What happens, in a sentence.
        fault: The fault that does it, as Python.
        met_by: How many tests would meet it.
        tried: With how many of them it took place.
        noticed_by: The test that noticed, or that has a fault of its own; "" if there is none.
        why: What failed there.
        places: Where it took place; of an unnoticed one at most `PLACES`.
    """

    protocol: str
    behaviour: str
    about: str
    fault: str
    verdict: Verdict
    met_by: int
    tried: int = 0
    noticed_by: str = ""
    why: str = ""
    places: Sequence[Place] = ()


#: How many tests are named in which an unnoticed behaviour took place.
PLACES = 3


def score_of(rows: Iterable[Row]) -> float | None:
    """How many of the behaviours that took place were noticed, in percent; None if none took place."""
    counts = Counter(row.verdict for row in rows)
    good = sum(counts[each] for each in GOOD)
    bad = counts[Verdict.UNNOTICED]
    return 100 * good / (good + bad) if good + bad else None


class Trial:
    """The reruns of one session.

    Args:
        tests: All that have run.
        run: Runs tests again.
        wait_s: The least time that a test gets.
        cpu_s: What all reruns may take together, about.
        only: The names of the behaviours to try; none: all.

    Raises:
        UsageError: No fake of these tests has a behaviour of such a name.
    """

    def __init__(
        self,
        tests: Sequence[Plain],
        run: Callable[[Order], list[Ran]],
        *,
        wait_s: float,
        cpu_s: float,
        only: Collection[str] = (),
    ) -> None:
        self.tests = tests
        self._run = run
        self._wait_s = wait_s
        self._cpu_s = cpu_s
        self._protocols = sorted({protocol for test in tests for protocol, _ in test.meets})
        self._known = _chosen(self._protocols, only)
        self._noticed: Counter[int] = Counter()  #: how much each test has noticed so far

    def leave_out(self) -> None:
        """Leave out the tests that fail with fixtures of their own, and with nothing wrong."""
        waiting = self._usable(lambda test: bool(test.meets))
        while waiting:
            ran = self._again(waiting, stops=False)
            for each, test in zip(ran, waiting, strict=False):
                if each.outcome != "passed":
                    test.why_not = f"fails with fixtures of its own: {each.why}"
            waiting = waiting[len(ran) :] if ran else []

    def rows(self) -> Iterator[Row]:
        """What becomes of each behaviour, as soon as it is known."""
        for number, (protocol, behaviour) in enumerate(self._known):
            yield self._row(protocol, behaviour, self._cpu_s / (len(self._known) - number))

    def _row(self, protocol: str, behaviour: Behaviour, cpu_s: float) -> Row:
        key = (protocol, behaviour.name)
        row = Row(protocol, behaviour.name, behaviour.about, repr(behaviour.fault), Verdict.NOT_MET, 0)
        own = self._usable(lambda test: key in test.brings_about)
        meeting = self._usable(lambda test: key in test.meets)
        if own:
            return _but(row, verdict=Verdict.OWN, met_by=len(meeting), noticed_by=own[0].name)
        if not meeting:
            return row
        meeting.sort(key=lambda test: (-self._noticed[test.number], test.cpu_s))
        ran = self._again(meeting, protocol=protocol, behaviour=behaviour.name, cpu_s=cpu_s)
        return self._judged(_but(row, met_by=len(meeting)), ran)

    def _judged(self, row: Row, ran: Sequence[Ran]) -> Row:
        names = {test.number: test.name for test in self.tests}
        there = [each for each in ran if each.lines is not None]
        row = _but(row, tried=len(there), met_by=row.met_by - len(ran) + len(there))
        if not there:
            return row
        places = [Place(names[each.test], each.lines or []) for each in there]
        last = there[-1]
        if last.outcome == "passed":
            return _but(row, verdict=Verdict.UNNOTICED, places=places[:PLACES])
        self._noticed[last.test] += 1
        verdict = Verdict.TIMEOUT if last.outcome == "timeout" else Verdict.NOTICED
        return _but(row, verdict=verdict, noticed_by=names[last.test], why=last.why, places=places[-1:])

    def _usable(self, wanted: Callable[[Plain], bool]) -> list[Plain]:
        return [test for test in self.tests if not test.why_not and wanted(test)]

    def _again(self, tests: Iterable[Plain], **order: Any) -> list[Ran]:
        """Run tests again, and pay for it."""
        limits = [(test.number, max(self._wait_s, TIMES * test.seconds)) for test in tests]
        ran = self._run(Order(limits, self._protocols, **order))
        self._cpu_s -= max((each.cpu_s for each in ran), default=0.0)
        return ran


def _chosen(protocols: Iterable[str], only: Collection[str]) -> list[tuple[str, Behaviour]]:
    """The behaviours of these protocols, or those of them that have one of these names."""
    known = [(name, each) for name in protocols for each in behaviours_of(find_protocol(name))]
    names = dict.fromkeys(each.name for _, each in known)
    for name in only:
        if names and name not in names:
            raise UsageError(f"there is no behaviour {name!r}{instead_of(name, names)}")
    return [(protocol, each) for protocol, each in known if not only or each.name in only]


def _but(row: Row, **fields: object) -> Row:
    return msgspec.structs.replace(row, **fields)
