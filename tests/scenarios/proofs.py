"""What the proofs share: a scenario is proven if the reference client passes it and a mutant fails it."""

from __future__ import annotations

import gc
import warnings

import pytest

from conformance.clients.mutants.kills import cover, known_kills
from conformance.clients.mutants.matrix import GOOD, Mode, affordable, candidates, mode_of, run
from conformance.clients.mutants.registry import Mutant
from conformance.clients.reference.registry import protocols
from conformance.results import Verdict
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario

TRIES = 3  #: of a run without a verdict

#: What is judged over sockets because memory has none of what it is about, by id and variant.
NOT_IN_MEMORY = {
    **dict.fromkeys(
        (
            *(("MOL-1.17", serializer) for serializer in ("avro", "protobuf", "thrift")),
            *((name, "tcp") for name in ("MOL-3.01", "MOL-3.02", "MOL-4.03", "MOL-4.08")),
            ("NET-1.01[moleculer/tcp]", "tcp"),
        ),
        "nodes of the TCP transporter find each other by their addresses",
    ),
    **dict.fromkeys(
        (
            *(
                (f"NET-2.12[{protocol}]", "")
                for protocol in ("blazingmq", "mqtt", "narconi", "rabbitmq-stream")
            ),
            ("NET-2.06[pzq]", ""),
        ),
        "a connect that never completes",
    ),
}


def in_memory(item: Scenario) -> bool:
    """Whether it takes no real time."""
    return mode_of(item) is Mode.MEMORY and not item.alone and (item.label, item.variant) not in NOT_IN_MEMORY


def provable() -> list[Scenario]:
    """The scenarios for which there is a reference client; the long ones left out."""
    return [item for item in all_scenarios() if item.protocol in protocols() and not item.soak]


def prove(item: Scenario, *, whole: bool = False) -> None:
    """Fail the test unless the reference client passes, and the mutants that are listed do not.

    Args:
        whole: All that are listed; else the one of the cover (`conformance.clients.mutants.kills.cover`).
    """
    mode = working_mode(item)
    listed = known_kills().get(item.key, ())
    if not listed:
        pytest.fail(f"{item.label}: no mutant fails it: run `fakebrokers mutants --write`")
    tried = {one.name: one for one in affordable(item, candidates(item), mode)}
    names = listed if whole else (cover(known_kills())[item.key],)
    unknown = [name for name in names if name not in tried]
    harmless = [name for name in names if name in tried and not kills(item, tried[name], mode)]
    for wrong, problem in ((unknown, "is not tried on it"), (harmless, "does not fail it")):
        if wrong:
            pytest.fail(f"{item.label}: {', '.join(wrong)} {problem}: run `fakebrokers mutants --write`")


def kills(item: Scenario, mutant: Mutant, mode: Mode) -> bool:
    """Whether the mutant fails it. What a mutant leaves open is its own defect, and no warning of ours.

    A run in which the machine was too busy for a verdict says nothing, and is tried again.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for _ in range(TRIES):
            found = run(item, mutant, mode)
            if found.verdict is not Verdict.INCONCLUSIVE:
                break
        gc.collect()
    return found.kills


def working_mode(item: Scenario) -> Mode:
    """How the reference client passes: in memory unless `NOT_IN_MEMORY` says why not."""
    reasons = []
    modes = [Mode.MEMORY] if in_memory(item) else [mode_of(item), Mode.SOCKETS]
    for mode in [Mode.SOCKETS] if (item.label, item.variant) in NOT_IN_MEMORY else modes:
        judgement = run(item, None, mode, invariants=True)
        if judgement.verdict in GOOD:
            return mode
        reasons.append(f"{mode}: {judgement.verdict}: {judgement.reason}")
    pytest.fail(f"{item.label}: the reference client fails: {'; '.join(reasons)}")
