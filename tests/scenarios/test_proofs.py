"""Every scenario can be passed, and can be failed: the reference client and its mutants.

One test per section, so that a failure names its place and the tests spread over processes.
"""

from __future__ import annotations

import pytest

from conformance.mutants.matrix import GOOD, Mode, candidates, mode_of, run
from conformance.mutants.registry import mutants_of, protocols
from conformance.suite.catalogue import families
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario


def sections() -> dict[str, list[Scenario]]:
    found: dict[str, list[Scenario]] = {}
    for item in all_scenarios():
        if item.protocol in protocols() and not item.soak:
            found.setdefault(f"{item.requirement.section}-{item.protocol}", []).append(item)
    return found


@pytest.mark.parametrize("section", sections())
@pytest.mark.timeout(600)
def test_the_reference_client_passes_and_a_mutant_fails(section: str) -> None:
    broken: dict[str, str] = {}
    unproven = []
    for item in sections()[section]:
        mode = working_mode(item)
        if mode is None:
            broken[item.label] = run(item).reason
        elif not any(run(item, mutant, mode).kills for mutant in candidates(item)):
            unproven.append(item.label)
    assert not broken, "the reference client fails"
    assert not unproven, "no mutant fails these"


def working_mode(item: Scenario) -> Mode | None:
    """How the reference client passes: in memory if that is possible, else over sockets; None if it fails."""
    for mode in dict.fromkeys([mode_of(item), Mode.SOCKETS]):
        if run(item, None, mode).verdict in GOOD:
            return mode
    return None


@pytest.mark.parametrize("protocol", protocols())
def test_every_mutant_is_caught_somewhere(protocol: str) -> None:
    """A mutant declares what it breaks, in the codes of its protocol's document."""
    known = {code for family in families().values() for code in family.basis}
    for mutant in mutants_of(protocol):
        assert mutant.breaks and set(mutant.breaks) <= known, mutant.name
        assert mutant.title
