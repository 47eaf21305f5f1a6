"""The client lives, and speaks as an adapter has to."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.invariants.registry import Violation, invariant
from conformance.sweep.case import Case


@invariant("lives")
def lives(case: Case) -> Iterator[Violation]:
    """The client goes on, whatever comes."""
    if case.error:
        yield (case.error.strip().splitlines()[-1],)
    for done in case.ops:
        if done.result is not None and done.result.crashed:
            yield f"the client ended in {done.op}", done.begun


@invariant("no-unhandled")
def no_unhandled(case: Case) -> Iterator[Violation]:
    """No exception gets lost outside the client's own code."""
    lines = case.complaints.strip().splitlines()
    if lines:
        yield (lines[-1],)


@invariant("adapter-protocol")
def adapter_protocol(case: Case) -> Iterator[Violation]:
    """The adapter says what its protocol allows."""
    for problem in case.violations:
        yield (problem,)


@invariant("op-ends")
def op_ends(case: Case) -> Iterator[Violation]:
    """Every op ends by its deadline."""
    for done in case.ops:
        if done.result is not None and done.result.hang:
            yield f"{done.op} gave no answer within {done.timeout_s:g} s", done.begun
