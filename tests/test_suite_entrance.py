"""`fakebrokers.suite`: what tests of a user's own take from the suite, whatever their folders are called."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fakebrokers.suite
from fakebrokers.errors import UsageError

FOREIGN = "from fakebrokers.suite import scenarios, scenario, Client; print(scenarios.__module__)"


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


def test_all_names_are_there_and_typed() -> None:
    assert all(getattr(fakebrokers.suite, name) is not None for name in fakebrokers.suite.__all__)
    tree = ast.parse(Path(fakebrokers.suite.__file__).read_text())
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.name for each in typed.body if isinstance(each, ast.ImportFrom) for alias in each.names}
    assert imported == set(fakebrokers.suite.__all__) == set(dir(fakebrokers.suite))


def test_a_wrong_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'scenarois'"):
        _ = fakebrokers.suite.scenarois


@pytest.mark.parametrize("name", ["conformance", "scenarios"])
def test_a_folder_of_that_name_hides_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    assert run(FOREIGN, tmp_path).stdout == "conformance.pytest\n"


@pytest.mark.parametrize("place", ["conformance/__init__.py", "conformance.py"])
def test_one_that_was_imported_before_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("")
    last = run(f"import conformance; {FOREIGN}", tmp_path).stderr.splitlines()[-1]
    named = str((tmp_path / place).resolve()).removesuffix("/__init__.py")
    assert f"UsageError: a foreign package 'conformance' was imported from {named}; ours is in " in last
    assert last.endswith(": rename that one, or import fakebrokers.suite before it")


def test_without_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name, name=name)

    monkeypatch.setattr("fakebrokers.commands.own_package", missing)
    with pytest.raises(UsageError, match=r"'conformance' is not installed: pip install .*\[suite\]"):
        _ = fakebrokers.suite.scenarios
