"""Recorded events with changed bytes do not disturb a running fake; ci/nightly sends a million of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blazingmq.fuzz import GROWTH, attack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

EVENTS = 50_000
#: Of the client beside it: about one in 10 ms where the machine is its own.
ROUNDS = 20


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the size of a process from /proc")
def test_many_changed_events() -> None:
    found = attack(EVENTS)
    assert found.trouble is None
    assert (found.code, found.errors) == (0, "")
    assert found.rounds > ROUNDS
    assert found.grown < GROWTH, f"{found.grown / 1e6:.0f} MB more"
