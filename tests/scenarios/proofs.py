"""What the proofs share: a scenario is proven if the reference client passes it and a mutant fails it."""

from __future__ import annotations

import gc
import warnings

import pytest

from conformance.mutants.kills import known_kills
from conformance.mutants.matrix import GOOD, Mode, affordable, candidates, mode_of, run
from conformance.mutants.registry import Mutant
from conformance.reference.registry import protocols
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario


def in_memory(item: Scenario) -> bool:
    """Whether it takes no real time."""
    return mode_of(item) is Mode.MEMORY and not item.alone


def provable(*families: str) -> list[Scenario]:
    """The scenarios of some families for which there is a reference client; the long ones left out."""
    return [
        item
        for item in all_scenarios()
        if item.requirement.family in families and item.protocol in protocols() and not item.soak
    ]


def prove(item: Scenario) -> None:
    """Fail the test unless the reference client passes, and every mutant that is listed does not."""
    mode = working_mode(item)
    tried = {one.name: one for one in affordable(item, candidates(item), mode)}
    listed = known_kills().get(item.key, ())
    unknown = [name for name in listed if name not in tried]
    harmless = [name for name in listed if name in tried and not kills(item, tried[name], mode)]
    for names, problem in ((unknown, "is not tried on it"), (harmless, "does not fail it")):
        if names:
            pytest.fail(f"{item.label}: {', '.join(names)} {problem}: run `fakebrokers mutants --write`")
    if not listed and not any(kills(item, mutant, mode) for mutant in tried.values()):
        pytest.fail(f"{item.label}: no mutant fails it")


def kills(item: Scenario, mutant: Mutant, mode: Mode) -> bool:
    """Whether the mutant fails it. What a mutant leaves open is its own defect, and no warning of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        found = run(item, mutant, mode).kills
        gc.collect()
    return found


def working_mode(item: Scenario) -> Mode:
    """How the reference client passes: as far as possible in memory, else over sockets."""
    reasons = []
    for mode in dict.fromkeys([mode_of(item), Mode.SOCKETS]):
        judgement = run(item, None, mode, invariants=True)
        if judgement.verdict in GOOD:
            return mode
        reasons.append(f"{mode}: {judgement.verdict}: {judgement.reason}")
    pytest.fail(f"{item.label}: the reference client fails: {'; '.join(reasons)}")
