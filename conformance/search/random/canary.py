"""The canary: a broken client that has to fail, or the harness itself is broken."""

from __future__ import annotations

from conformance.search.random.draw import Setting, draw
from conformance.search.random.material import material_of
from conformance.search.random.run import runner
from conformance.search.random.verdict import Word, verdict_on
from fakebrokers.faults import Realism

RUNS_MAX = 40  #: the protocol's canary fails in a handful


def canary_fails(protocol: str) -> bool:
    """Whether the protocol's canary is found within a few runs; True where it has none."""
    mutant = material_of(protocol).actions.canary
    if not mutant:
        return True
    go = runner(protocol, mutant)
    setting = Setting(protocol, Realism.ENVIRONMENT)
    return any(
        verdict_on(go(draw(setting, f"canary {number}"))).word is Word.FAIL for number in range(RUNS_MAX)
    )
