"""State machines of Hypothesis as what ``fakebrokers simulate`` runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.search.machines import TestFine as TestInPytest  # noqa: F401 - the same machine runs there
from tests.simulation.search.test_command import document, folder, simulate  # noqa: F401 - a fixture


def rules(failed: dict[str, Any]) -> list[str]:
    """Those that have run, without the states' beginning and end."""
    lines = [line.split(None, 2)[2] for line in failed["time_line"] if line.split()[1] == "rules"]
    assert (lines[0][:8], lines[-1]) == ("state = ", "state.teardown()")
    return lines[1:-1]


def test_faults_and_rules_are_shrunk_and_replayed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("machines:Careless", "--seeds", "1..20", "--fault", "refuse", "--fault", "crash")
    (failed,) = document(capsys, tmp_path, *words, code=1)["failed"]
    assert failed["name"].startswith("AssertionError at machines.py:")
    assert failed["steady"]
    assert len(failed["schedule"]["steps"]) == 1
    assert [rule.partition("(")[0] for rule in rules(failed)] == ["state.ask"]

    path = Path(failed["replay"])
    text = path.read_text()
    assert "Careless" not in json.dumps({**json.loads(text), "failure": ""})  # it names no code
    assert simulate("machines:Careless", "--replay", str(path)) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "fails again"
    assert simulate("machines:Fine", "--replay", str(path)) == 0


def test_a_machine_without_mistakes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = document(capsys, tmp_path, "machines:Fine", "--seeds", "1..15", "--twice", "--shuffle", code=0)
    assert (found["runs"], found["failed"], found["not_repeated"]) == (15, [], [])


@pytest.mark.full
def test_rules_alone_are_shrunk_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (failed,) = document(capsys, tmp_path, "machines:Full", "--seeds", "1..20", code=1)["failed"]
    assert failed["schedule"]["steps"] == []
    assert len(rules(failed)) == len(set(rules(failed))) == 3
    assert all(rule.startswith("state.ask(") for rule in rules(failed))


def test_one_that_does_not_repeat_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = document(capsys, tmp_path, "machines:Unsteady", "--seeds", "1..5", code=2)
    assert b"/queues/of-".hex() in found["not_repeated"][0]["differs"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["machines:OnItsOwn"], "def __init__(self, simulation=None)"),
        (["machines:Fine", "--check", "worlds:has_all"], "a state machine checks in its invariants"),
    ],
)
def test_wrong_usage(words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert simulate(*words, "--report", str(tmp_path)) == 64
    assert said in capsys.readouterr().err
