"""Which invariants there are, and how a run is judged by all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from conformance.sweep.case import Case
from conformance.sweep.tape import Moment

#: What an invariant yields: a sentence, and the moments on the tape that prove it.
Violation = tuple[str, *tuple[Moment | None, ...]]
Check = Callable[[Case], Iterable[Violation]]


class Finding(NamedTuple):
    """A violated invariant.

    Attributes:
        name: Of the invariant.
        detail: What happened, one sentence.
        rows: Rows of the tape that prove it.
    """

    name: str
    detail: str
    rows: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.detail}"


class Invariant(NamedTuple):
    """A rule that holds in every run of every client. `about` is the rule in words."""

    name: str
    about: str
    check: Check


INVARIANTS: dict[str, Invariant] = {}

ALIVE = "lives"
HARNESS = "harness"  #: in place of an invariant: the sweep itself has failed


def invariant(name: str) -> Callable[[Check], Check]:
    """Declare an invariant; its docstring is the rule. Several functions may share a name and a rule."""

    def register(check: Check) -> Check:
        about = " ".join((check.__doc__ or "").split())
        key = name if name not in INVARIANTS else f"{name} {len(INVARIANTS)}"
        INVARIANTS[key] = Invariant(name, about, check)
        return check

    return register


def judge(case: Case) -> list[Finding]:
    """All findings of a run, the first of each invariant only: what follows from it is no news."""
    if case.harness:
        return [Finding(HARNESS, case.harness)]
    alive = [
        finding for each in INVARIANTS.values() if each.name == ALIVE for finding in _findings(each, case)
    ]
    if alive:
        return alive[:1]  # nothing else can be said of a client that is gone
    found: dict[str, Finding] = {}
    for each in INVARIANTS.values():
        if each.name not in found:
            for finding in _findings(each, case):
                found[each.name] = finding
                break
    return list(found.values())


def _findings(each: Invariant, case: Case) -> Iterator[Finding]:
    try:
        for detail, *moments in each.check(case):
            yield Finding(each.name, detail, tuple(moment.row for moment in moments if moment is not None))
    except Exception as error:  # what a client says may be such as no rule expects
        yield Finding(HARNESS, f"the rule {each.name} cannot judge this run: {error!r}")
