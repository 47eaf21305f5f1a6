"""What the proofs share: a scenario is proven if the reference client passes it and a mutant fails it."""

from __future__ import annotations

import pytest

from conformance.mutants.kills import known_kills
from conformance.mutants.matrix import GOOD, Mode, affordable, candidates, mode_of, run
from conformance.mutants.registry import protocols
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
    """Fail the test unless the reference client passes and a mutant does not."""
    mode = working_mode(item)
    mutants = sorted(affordable(item, candidates(item), mode), key=lambda one: item.id not in one.aims)
    listed = [one for one in mutants if one.name in known_kills().get(item.key, ())]
    if listed and not run(item, listed[0], mode).kills:
        pytest.fail(f"{item.label}: {listed[0].name} does not fail it: run `fakebrokers mutants --write`")
    if not listed and not any(run(item, mutant, mode).kills for mutant in mutants):
        pytest.fail(f"{item.label}: no mutant fails it")


def working_mode(item: Scenario) -> Mode:
    """How the reference client passes: as far as possible in memory, else over sockets."""
    reasons = []
    for mode in dict.fromkeys([mode_of(item), Mode.SOCKETS]):
        judgement = run(item, None, mode)
        if judgement.verdict in GOOD:
            return mode
        reasons.append(f"{mode}: {judgement.verdict}: {judgement.reason}")
    pytest.fail(f"{item.label}: the reference client fails: {'; '.join(reasons)}")
