"""Shrinking: few faults, near the front, plain, and a short base."""

from __future__ import annotations

from collections.abc import Callable

from conformance.run.specs import ArgumentChange, Injection, Spec
from conformance.search.systematic.shrink import EVALUATIONS_MAX, SIMPLER

MANY = tuple(Injection("c1", "out", number, "latency", 30.0) for number in range(20, 30))


def smallest(fails: Callable[[Spec], bool], spec: Spec) -> tuple[Spec, int]:
    assert fails(spec)
    search = SIMPLER.search(fails)
    return search.smallest(spec), search.runs


def test_faults_that_play_no_part_are_dropped() -> None:
    guilty = Injection("c2", "in", 7, "cut", 6)
    spec = Spec("toy", "base", (*MANY, guilty), (ArgumentChange(1, "a", 2),))
    found, runs = smallest(
        lambda one: any(injection.connection == "c2" for injection in one.injections), spec
    )
    assert len(found.injections) == 1
    assert found.changes == ()
    assert runs <= EVALUATIONS_MAX


def test_two_faults_that_need_one_another_stay() -> None:
    def fails(one: Spec) -> bool:
        return {"c2", "c3"} <= {injection.connection for injection in one.injections}

    pair = (Injection("c2", "in", 1, "rst"), Injection("c3", "in", 1, "rst"))
    found, runs = smallest(fails, Spec("toy", "base", (*MANY, *pair)))
    assert found.injections == pair
    assert runs <= EVALUATIONS_MAX


def test_a_fault_moves_to_the_front_as_far_as_it_goes() -> None:
    found, _ = smallest(
        lambda one: bool(one.injections) and one.injections[0].nth >= 7,
        Spec("toy", "base", (Injection("c1", "out", 90, "rst"),)),
    )
    assert found.injections[0].nth == 7


def test_a_plainer_act_is_taken_where_it_fails_too() -> None:
    spec = Spec("toy", "base", (Injection("c1", "out", 1, "contradict", ["instead", 5]),))
    found, _ = smallest(lambda one: bool(one.injections), spec)
    assert found.injections == (Injection("c1", "out", 1, "rst"),)


def test_numbers_get_smaller() -> None:
    def fails(one: Spec) -> bool:
        return bool(one.injections) and one.injections[0].act == "cut" and one.injections[0].param >= 5

    found, _ = smallest(fails, Spec("toy", "base", (Injection("c1", "out", 1, "cut", 60),)))
    assert found.injections[0].param == 5


def test_the_base_gets_shorter() -> None:
    found, _ = smallest(lambda one: one.ops is None or one.ops >= 3, Spec("toy", "base"))
    assert found.ops == 3


def test_no_more_runs_than_allowed() -> None:
    spec = Spec("toy", "base", MANY)
    search = SIMPLER._replace(most=5).search(lambda one: len(one.injections) > 8)
    search.smallest(spec)
    assert search.runs == 5
