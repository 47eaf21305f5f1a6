"""Which invariants there are, and how a run is judged by all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from conformance.results import Level
from conformance.run.case import Case
from conformance.run.facts import Should
from conformance.run.trace import Position

#: What an invariant yields: a sentence, and the positions in the trace that prove it.
Violation = tuple[str, *tuple[Position | None, ...]]
Check = Callable[[Case], Iterable[Violation]]


class Finding(NamedTuple):
    """A violated invariant.

    Attributes:
        name: Of the invariant.
        detail: What happened, one sentence.
        rows: Rows of the trace that prove it.
        allowed: The word of the client's contract that allows it; "" if none does.
        level: That of the invariant, but for what harms no one (`conformance.run.facts.Should`).
        besides: What other checks of the invariant say that weighs as much.
    """

    name: str
    detail: str
    rows: tuple[int, ...] = ()
    allowed: str = ""
    level: Level = "MUST"
    besides: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All that there is to report."""
        return "; besides, ".join((self.detail, *self.besides))

    @property
    def weight(self) -> int:
        """What hides what: of several findings of one invariant only the heaviest is reported."""
        return 0 if self.allowed else 1 if self.level == "SHOULD" else 2

    def __str__(self) -> str:
        return f"{self.name}: {self.text}" + (f" (allowed: {self.allowed})" if self.allowed else "")


class Invariant(NamedTuple):
    """A rule that holds in every run of every client.

    Attributes:
        about: The rule in words.
        level: ``MUST``, or ``SHOULD`` for what is asked of a client for the sake of others alone.
    """

    name: str
    about: str
    check: Check
    level: Level = "MUST"


INVARIANTS: dict[str, Invariant] = {}


class May(str):
    """The sentence of a violation that a contract may allow.

    Args:
        word: By which it does; see `conformance.clients.adapter.contract.Contract.allows`.
    """

    word: str

    def __new__(cls, word: str, text: str) -> May:
        made = super().__new__(cls, text)
        made.word = word
        return made


ALIVE = "lives"
HEAVIEST: dict[Level, int] = {"MUST": 2, "SHOULD": 1}  #: `Finding.weight`, by the level of the invariant
HARNESS = "harness"  #: in place of an invariant: the sweep itself has failed


def invariant(name: str, level: Level = "MUST") -> Callable[[Check], Check]:
    """Declare an invariant; its docstring is the rule. Several functions may share a name and a rule.

    The docstring of one of them explains the rule in sections: see `conformance.rules.sentences`.
    """

    def register(check: Check) -> Check:
        about = " ".join((check.__doc__ or "").partition("Why:\n")[0].split())
        key = name if name not in INVARIANTS else f"{name} {len(INVARIANTS)}"
        INVARIANTS[key] = Invariant(name, about, check, level)
        return check

    return register


def judge(case: Case) -> list[Finding]:
    """The findings of a run that its client's contract does not allow."""
    return [finding for finding in findings(case) if not finding.allowed]


def findings(case: Case) -> list[Finding]:
    """All findings of a run, the first of each check only: what follows from it is no news. Those of several
    checks of an invariant are one.

    What the contract allows hides nothing that it does not allow, and a SHOULD hides no MUST.
    """
    if case.harness:
        return [Finding(HARNESS, case.harness)]
    alive = [
        finding for each in INVARIANTS.values() if each.name == ALIVE for finding in _findings(each, case)
    ]
    if alive:
        return alive[:1]  # nothing else can be said of a client that is gone
    found: dict[str, Finding] = {}
    for each in INVARIANTS.values():
        for one in _heaviest(each, case):
            said = found.get(one.name)
            if said is None or one.weight > said.weight:
                found[one.name] = one
            elif one.weight == said.weight and one.detail not in (said.detail, *said.besides):
                found[one.name] = said._replace(besides=(*said.besides, one.detail))
    return list(found.values())


def _heaviest(each: Invariant, case: Case) -> list[Finding]:
    """The first of the heaviest findings of one check; none if it is not violated."""
    found: list[Finding] = []
    for finding in _findings(each, case):
        if not found or finding.weight > found[0].weight:
            found = [finding]
        if found[0].weight == HEAVIEST[each.level]:
            break
    return found


def _findings(each: Invariant, case: Case) -> Iterator[Finding]:
    try:
        for detail, *positions in each.check(case):
            rows = tuple(position.row for position in positions if position is not None)
            word = detail.word if isinstance(detail, May) else ""
            allowed = word if word and case.contract.allows(word) else ""
            level: Level = "SHOULD" if isinstance(detail, Should) else each.level
            yield Finding(each.name, str(detail), rows, allowed, level)
    except Exception as error:  # what a client says may be such as no rule expects
        yield Finding(HARNESS, f"the rule {each.name} cannot judge this run: {error!r}")
