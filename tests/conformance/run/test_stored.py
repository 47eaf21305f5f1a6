"""A run that was kept is judged as on its day, and by rules that nobody had thought of then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from conformance.clients.mutants.registry import mutants_of
from conformance.rules import INVARIANTS, findings, invariant, judge
from conformance.rules.registry import Violation
from conformance.run.case import Case
from conformance.run.inprocess import runner
from conformance.run.material import material_of
from conformance.run.specs import Spec
from conformance.run.stored import CASE, case_of, rows_of
from fakebrokers.faults import Realism
from fakebrokers.journal import RunJournal
from fakebrokers.journal.rows import TracedRow

PROTOCOLS = ("rabbitmq-stream", "blazingmq", "pzq", "narconi", "moleculer")
MUTANTS, BASES = 4, 3  #: that are tried, spread over all that there are


def kept(case: Case, allows: Iterable[str] = ()) -> list[TracedRow]:
    journal = RunJournal(None, "run", traces=True)
    journal.trace(rows_of(case, allows))
    return journal.log().trace


def spread(found: list[str], count: int) -> list[str]:
    return found[:: max(1, len(found) // count)][:count]


def runs(protocol: str) -> Iterator[Case]:
    """Some runs of the correct client, and of broken ones."""
    names = [mutant.name for mutant in mutants_of(protocol)]
    mutants = ["", *spread(names, MUTANTS)]
    for mutant in mutants:
        run = runner(protocol, mutant)
        for base in spread(sorted(material_of(protocol).bases), BASES):
            yield run(Spec(protocol, base))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_was_found_is_found_again(protocol: str) -> None:
    seen = 0
    for case in runs(protocol):
        again, _ = case_of(kept(case))
        assert findings(again) == findings(case), case.spec
        assert str(again.facts) == str(case.facts), case.spec
        seen += bool(case.ops)
    assert seen > MUTANTS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_chaos_run_is_judged_as_on_its_day(protocol: str) -> None:
    from conformance.search.random.draw import Setting, draw
    from conformance.search.random.run import runner as chaos_runner

    for mutant in ("", mutants_of(protocol)[0].name):
        run = chaos_runner(protocol, mutant)
        for seed in ("1", "2"):
            case = run(draw(Setting(protocol, Realism.ILLEGAL), seed))
            again, _ = case_of(kept(case))
            assert findings(again) == findings(case)
            assert again.is_truthful == case.is_truthful


def test_a_rule_of_today_judges_a_run_of_yesterday() -> None:
    case = runner("pzq")(Spec("pzq", "consume"))
    rows = kept(case)
    assert judge(case_of(rows)[0]) == []

    @invariant("says-nothing")
    def says_nothing(of: Case) -> Iterator[Violation]:
        """The client writes nothing."""
        for conn in of.conns.values():
            for seen in conn.of("in"):
                yield f"it wrote a {seen.frame.__class__.__name__}", seen.at

    try:
        [found] = judge(case_of(rows)[0])
    finally:
        del INVARIANTS["says-nothing"]
    assert found.name == "says-nothing"
    assert rows[found.rows[0]].what == "in"


def test_what_the_scenario_makes_the_client_violate_is_kept() -> None:
    case = runner("pzq")(Spec("pzq", sorted(material_of("pzq").bases)[0]))
    assert case_of(kept(case, ["lives"]))[1] == {"lives"}


def test_a_trace_without_its_end_is_no_case() -> None:
    rows = kept(runner("pzq")(Spec("pzq", sorted(material_of("pzq").bases)[0])))
    assert rows[-1].what == CASE
    for cut in ([], rows[:-1], rows[:3]):
        with pytest.raises(ValueError, match="no end"):
            case_of(cut)
