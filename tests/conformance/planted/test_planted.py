"""Each planted defect is one: its witness passes on the reference client, and fails once it is planted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.planted.check import modules

TOP = Path(__file__).parents[3]


@pytest.mark.full
@pytest.mark.parametrize("protocol", sorted({name.partition("/")[0] for name in modules([])}))
def test_each_witness_holds(protocol: str) -> None:
    command = [sys.executable, "-m", "tests.conformance.planted.check", protocol]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("holds ") == len(modules([protocol]))
