"""What the shell completes, asked as the shell asks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from conformance.clients.adapters.registry import bundled
from conformance.suite.load import requirements
from fakebrokers.protocol import protocol_names
from tests.eventually import PATIENCE_S


def completed(line: str) -> list[str]:
    """The words that bash is offered for the last one of a line."""
    words = line.split(" ")
    env = os.environ | {
        "_FAKEBROKERS_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    program = "from fakebrokers.cli import cli; cli.main(prog_name='fakebrokers')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stderr == ""
    return [each.removeprefix("plain,") for each in done.stdout.splitlines()]


@pytest.mark.parametrize("line", ["conform --client rs", "sweep --client rs", "replay --client rs"])
def test_clients(line: str) -> None:
    assert completed(f"fakebrokers {line}") == ["rstream"]


def test_clients_of_a_protocol() -> None:
    offered = completed("fakebrokers conform --protocol pzq --client ")
    assert offered == [client.name for client in bundled("pzq")]
    assert "pzq-python" in offered and "rstream" not in offered


@pytest.mark.parametrize("line", ["serve ", "conform --protocol ", "list --protocol ", "mutants --protocol "])
def test_protocols(line: str) -> None:
    offered = completed(f"fakebrokers {line}")
    assert {"blazingmq", "moleculer", "narconi", "pzq", "rabbitmq-stream"} <= set(offered)
    assert set(offered) <= set(protocol_names())  # tests register one more


@pytest.mark.parametrize("line", ["explain ", "conform --client rstream ", "mutants "])
def test_scenarios(line: str) -> None:
    offered = completed(f"fakebrokers {line}rmqs-2.1")
    assert offered == [each for each in requirements() if each.startswith("RMQS-2.1")]
    assert len(offered) > 2


def test_rules() -> None:
    assert completed("fakebrokers explain wire-") == ["wire-legal"]
