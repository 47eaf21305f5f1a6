"""A shop with three planted mistakes: the command finds them all, shrinks them, and they repeat."""

from __future__ import annotations

import json
import linecache
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")

HERE = Path(__file__).parent
#: The asserts of `shop.main`, and the faults that each mistake needs at least.
RACE, TWICE, LEAK = "oversold", "sorted(set(stored))", "leaked"


def simulate(*words: str, cwd: Path = HERE) -> Any:
    command = [sys.executable, "-m", "fakebrokers", "simulate", "shop:main", *words, "--json"]
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, check=False)
    assert done.returncode in (0, 1)
    return json.loads(done.stdout)


def mistakes(found: Any) -> dict[str, Any]:
    """What failed, by the line that said so."""
    lines = {each["name"].rpartition(":")[2]: each for each in found["failed"]}
    said = {linecache.getline(str(HERE / "shop.py"), int(line)): each for line, each in lines.items()}
    return {next(word for word in (RACE, TWICE, LEAK) if word in line): each for line, each in said.items()}


def test_all_three_are_found_and_shrunk(tmp_path: Path) -> None:
    before = sum(os.times()[2:4])
    found = simulate("--shuffle", "--seeds", "1..30", "--report", str(tmp_path))
    assert sum(os.times()[2:4]) - before < 60
    told = mistakes(found)
    faults = {name: len(each["schedule"]["steps"]) for name, each in told.items()}
    shuffled = {name: each["schedule"]["shuffle"] for name, each in told.items()}
    assert faults == {RACE: 0, TWICE: 1, LEAK: 1}
    assert shuffled == {RACE: True, TWICE: False, LEAK: False}
    assert all(each["steady"] for each in told.values())


@pytest.mark.full
def test_the_race_is_not_found_where_the_order_is_not_drawn(tmp_path: Path) -> None:
    found = simulate("--seeds", "1..30", "--report", str(tmp_path))
    assert set(mistakes(found)) == {TWICE, LEAK}


@pytest.mark.nightly
def test_each_is_found_again_twenty_times_of_twenty(tmp_path: Path) -> None:
    found = simulate("--shuffle", "--seeds", "1..200", "--report", str(tmp_path))
    for each in found["failed"]:
        for _ in range(20):
            again = simulate("--replay", each["replay"])
            assert (again["fails"], again["same"], again["differs"]) == (True, True, "")
            assert again["time_line"] == each["time_line"]


@pytest.mark.nightly
def test_a_thousand_of_a_thousand_seeds_are_equal_twice(tmp_path: Path) -> None:
    found = simulate("--shuffle", "--twice", "--seeds", "1..1000", "--report", str(tmp_path), "-n", "2")
    assert (found["runs"], found["not_repeated"]) == (1000, [])


@pytest.mark.nightly
def test_the_race_is_in_none_of_a_thousand_seeds_whose_order_is_not_drawn(tmp_path: Path) -> None:
    found = simulate("--seeds", "1..1000", "--report", str(tmp_path), "-n", "2")
    assert (found["runs"], RACE in mistakes(found)) == (1000, False)
