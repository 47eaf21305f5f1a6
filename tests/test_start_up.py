"""Commands load what they need: counted in modules, since the processor's time depends on the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conformance.cli import commands
from tests.eventually import PATIENCE_S

#: Prints the modules that a command has loaded, after what it prints itself.
PROGRAM = """
import sys
from fakebrokers.cli import main
try:
    main(sys.argv[1:])
except SystemExit as left:
    assert not left.code, left.code
print("LOADED", *sys.modules)
"""


def loaded(*args: str) -> set[str]:
    """The modules that are there when the command has ended."""
    command = [sys.executable, "-c", PROGRAM, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    return set(done.stdout.rpartition("LOADED")[2].split())


def of(modules: set[str], package: str) -> set[str]:
    return {name for name in modules if name == package or name.startswith(f"{package}.")}


def test_the_first_help_loads_no_command() -> None:
    modules = loaded("--help")
    assert of(modules, "conformance") == {"conformance", "conformance.cli"}
    for heavy in ("aiohttp", "asyncio", "rich", "ssl", "numpy", "pyarrow", "zmq", "pytest", "packaging"):
        assert not of(modules, heavy), heavy
    assert len(of(modules, "fakebrokers")) <= 16
    assert len(modules) <= 230


def test_the_list_of_scenarios_loads_no_other_command() -> None:
    modules = loaded("list", "--protocol", "pzq")
    assert {name for name in modules if name.startswith("conformance.cli.")} == {
        "conformance.cli.completion",  # no command, but what shells complete
        "conformance.cli.folders",
        "conformance.cli.list",
    }
    for heavy in ("aiohttp", "numpy", "pyarrow", "jinja2", "packaging", "pytest"):
        assert not of(modules, heavy), heavy


@pytest.mark.parametrize("deferred", commands, ids=lambda each: each.name)
def test_the_first_help_says_of_a_command_what_the_command_says(deferred: object) -> None:
    found = next(each for each in commands if each is deferred)
    command = found.load()
    assert command.name == found.name
    assert command.get_short_help_str(200) == found.get_short_help_str(200)
