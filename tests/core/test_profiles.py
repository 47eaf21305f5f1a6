"""Profiles are found by name, and a wrong name is told what there is."""

from __future__ import annotations

import pytest

from fakebrokers.core.profiles import find_profile
from fakebrokers.errors import UsageError

PROFILES = {"real": 1, "seed": 2, "0.2.0-pre": 3}


def test_by_name() -> None:
    assert [find_profile(PROFILES, name, "toy") for name in PROFILES] == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Seed", "; did you mean 'seed'?"), ("0.2.0", "; did you mean '0.2.0-pre'?"), ("9", ".")],
)
def test_a_wrong_name(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_profile(PROFILES, name, "toy")
    assert str(caught.value) == f"toy has no profile {name!r}{hint} Choose from: real, seed, 0.2.0-pre"
