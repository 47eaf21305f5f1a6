"""What a mutant has to declare."""

from __future__ import annotations

import pytest

from conformance.clients.mutants.registry import mutants_of
from conformance.clients.reference.registry import protocols
from conformance.suite.catalogue import families


@pytest.mark.parametrize("protocol", protocols())
def test_a_mutant_says_what_is_wrong_and_what_it_breaks(protocol: str) -> None:
    known = {code for family in families().values() for code in family.basis}
    for mutant in mutants_of(protocol):
        assert mutant.title
        assert mutant.breaks and set(mutant.breaks) <= known, mutant.name
