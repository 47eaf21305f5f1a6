"""A little of what `fuzz` does at length."""

from __future__ import annotations

import pytest

from tests.moleculer.fuzz import TRANSPORTERS, recorded, run


@pytest.mark.parametrize("transporter", TRANSPORTERS)
def test_mutated_recordings_break_nothing(transporter: str) -> None:
    assert len(recorded(transporter)) > 20
    assert run(transporter, 1500) > 20
