"""Which client is to be judged, and what is said where that is not clear."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.process import ProcessAdapter
from conformance.suite import clients
from fakebrokers.errors import UsageError


class One(AdapterBase):
    protocols = ("pzq",)


class Several(AdapterBase):
    protocols = ("pzq", "narconi")


def one() -> AdapterBase:
    return One()


def test_a_bundled_client() -> None:
    found = clients.bundled("reference-pzq", None)
    assert found[:2] == ("reference-pzq", "pzq")
    assert (found.options, found.in_process) == (("--client", "reference-pzq"), False)
    with pytest.raises(UsageError, match="reference-pzq does not speak narconi, but pzq"):
        clients.bundled("reference-pzq", "narconi")


@pytest.mark.parametrize("line", ["my adapter --flag 'a b'", ["my", "adapter", "--flag", "a b"]])
def test_a_command_as_a_line_or_as_words(line: str | list[str]) -> None:
    found = clients.command(line, "pzq")
    made = found.make()
    assert isinstance(made, ProcessAdapter) and made.command == ["my", "adapter", "--flag", "a b"]
    assert found.options == ("--adapter", "my adapter --flag 'a b'")


def test_a_program_beside_the_test(tmp_path: Path) -> None:
    """Found from there, whatever the current folder is; a name without a slash is one on the PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "adapter").touch()
    (tmp_path / "node").touch()
    for line, program in (
        ("bin/adapter", str(tmp_path / "bin/adapter")),
        ("node x", "node"),
        ("./no", "./no"),
    ):
        made = clients.command(line, "pzq", tmp_path).make()
        assert isinstance(made, ProcessAdapter) and made.command[0] == program


def test_python_is_that_of_the_virtual_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not have been activated; without one the PATH stays as it is."""
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setattr(sys, "prefix", "/venv")
    assert clients._beside_python() == {"PATH": f"{Path(sys.executable).parent}{os.pathsep}/usr/bin"}
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert clients._beside_python() == {}


def test_an_adapter_class() -> None:
    found = clients.in_process(One, None, asked="protocol=...")
    assert (found.protocol, found.options, found.in_process) == ("pzq", (), True)
    assert isinstance(found.make(), InProcessAdapter)
    assert clients.in_process(one, "pzq", asked="protocol=...").protocol == "pzq"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (Several, r"Several speaks pzq, narconi: say which with protocol=\.\.\."),
        (one, r"say with protocol=\.\.\. what one speaks"),
    ],
)
def test_a_class_that_does_not_say_what_it_speaks(make: type[AdapterBase], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        clients.in_process(make, None, asked="protocol=...")
