"""The commands ``adapter check``, ``adapter new`` and ``clients``."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.adapter import adapter, clients

HERE = Path(__file__).parent


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYTHONPATH", str(HERE.parents[3]))
    return shlex.join([sys.executable, str(HERE / "toy_adapter.py")])


def test_check_prints_a_line_for_each_thing_tried(toy: str) -> None:
    result = CliRunner().invoke(adapter, ["check", toy])
    assert result.exit_code == 0, result.output
    assert "ok        honesty" in result.output
    assert "toy 1 (python), roles: publisher, consumer" in result.output


def test_check_ends_with_1_and_the_problem(toy: str) -> None:
    result = CliRunner().invoke(adapter, ["check", f"{toy} Boasting"])
    assert result.exit_code == 1
    assert "failed    honesty" in result.output
    assert "expected: words of the table in ADAPTER.md" in result.output
    assert "came:     declares capabilities that do not exist: teleport" in result.output
    assert "fix:      look for a misspelt name" in result.output


def test_any_library_name_is_shown_as_it_is_and_harms_no_terminal(toy: str) -> None:
    result = CliRunner().invoke(adapter, ["check", f"{toy} Scoped"])
    assert (
        "@scope/[red]x[/red]\N{REPLACEMENT CHARACTER}[31m 1 (python), roles: publisher, consumer"
        in result.output
    )


def test_check_as_json_is_one_document(toy: str) -> None:
    result = CliRunner().invoke(adapter, ["check", "--json", toy])
    document = json.loads(result.output)
    assert document["ok"] is True
    assert document["hello"]["library"] == "toy"
    members = {"name", "asks", "problem", "expected", "fix", "seconds", "not_tried", "ok"}
    assert set(document["checks"][0]) == members
    left = {row["name"]: row["not_tried"] for row in document["checks"] if row["not_tried"]}
    assert list(left) == ["roles", "line order"]
    assert "nothing reached the fake broker" in left["roles"]


def test_new_writes_and_says_how_to_go_on(tmp_path: Path) -> None:
    result = CliRunner().invoke(adapter, ["new", "python", str(tmp_path / "mine"), "--protocol", "pzq"])
    assert result.exit_code == 0
    assert 'fakebrokers adapter check "python adapter.py"' in result.output
    assert (tmp_path / "mine" / "kit" / "stdio.py").is_file()
    again = CliRunner().invoke(adapter, ["new", "python", str(tmp_path / "mine")])
    assert again.exit_code == 2
    assert "already there" in again.output


def test_new_says_how_to_build_where_that_is_needed(tmp_path: Path) -> None:
    result = CliRunner().invoke(adapter, ["new", "go", str(tmp_path)])
    assert 'go build -o adapter && fakebrokers adapter check "./adapter"' in result.output


def test_clients_in_both_forms() -> None:
    rows = json.loads(CliRunner().invoke(clients, ["--json"]).output)
    assert "rstream" in [row["name"] for row in rows]
    assert "rstream" in CliRunner().invoke(clients).output
