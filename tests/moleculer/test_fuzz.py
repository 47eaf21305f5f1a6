"""A little of what `fuzz` does at length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.moleculer import fuzz_server
from tests.moleculer.fuzz import TRANSPORTERS, recorded, run


@pytest.mark.parametrize("transporter", TRANSPORTERS)
def test_mutated_recordings_break_nothing(transporter: str) -> None:
    assert len(recorded(transporter)) > 20
    assert run(transporter, 1500) > 20


@pytest.mark.parametrize("transporter", TRANSPORTERS)
def test_a_running_server_serves_others_meanwhile(transporter: str, tmp_path: Path) -> None:
    found = fuzz_server.run(transporter, 3000, tmp_path)
    assert found.connections >= 60
    assert found.stderr == ""
