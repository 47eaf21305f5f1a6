"""Commands of other packages: found, loaded from the right place, and never able to break the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fakebrokers import commands
from fakebrokers.commands import ExitCode, extra_commands, own_package
from fakebrokers.errors import UsageError
from tests.eventually import PATIENCE_S

ROOT = Path(commands.__file__).parent.parent


def install(folder: Path, name: str, code: str, entry: str = "commands") -> None:
    """Lay out a distribution as pip would: one module with commands, and its metadata."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[fakebrokers.commands]\n{name} = {name}:{entry}\n")
    (folder / f"{name}.py").write_text(code)


GREET = """
import click

@click.command()
def greet():
    "Say hello."
    click.echo("hello")
    return 4

commands = [greet]
"""


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder, whose modules come before all others."""
    command = [sys.executable, "-m", "fakebrokers", *args]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


def test_a_command_of_another_package(tmp_path: Path) -> None:
    install(tmp_path, "greeter", GREET)
    done = run(tmp_path, "greet")
    assert (done.stdout, done.returncode) == ("hello\n", ExitCode.REGRESSION)
    assert "Say hello." in run(tmp_path, "--help").stdout


@pytest.mark.parametrize(
    "code", ["import nowhere_to_be_found", "commands = [1, 2]", "raise SystemError('x')"]
)
def test_a_broken_package_is_named_with_its_cure(tmp_path: Path, code: str) -> None:
    install(tmp_path, "wreck", code)
    done = run(tmp_path, "greet")
    assert done.returncode == ExitCode.HARNESS
    assert "of the package wreck could not be loaded" in done.stderr
    assert "Update wreck, or uninstall it." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import nowhere", "Error: nowhere is not installed; 'fakebrokers doctor' shows how to get it\n"),
        ("import fakebrokers.nowhere", "a defect of fakebrokers"),
        ("raise SystemError('x')", "a defect of fakebrokers"),
    ],
)
def test_a_command_that_crashes_is_no_verdict(tmp_path: Path, line: str, message: str) -> None:
    install(tmp_path, "greeter", GREET.replace('click.echo("hello")', line))
    done = run(tmp_path, "greet")
    assert done.returncode == ExitCode.HARNESS
    assert done.stderr.startswith(message)


def test_a_broken_package_leaves_the_others_alone(tmp_path: Path) -> None:
    install(tmp_path, "greeter", GREET)
    install(tmp_path, "wreck", "import nowhere_to_be_found")
    assert run(tmp_path, "greet").stdout == "hello\n"
    help_text = run(tmp_path, "--help")
    assert "serve" in help_text.stdout and "greet" in help_text.stdout and "wreck" in help_text.stdout
    assert help_text.returncode == ExitCode.OK


def test_serve_and_help_for_it_load_no_other_package(tmp_path: Path) -> None:
    install(tmp_path, "tattler", "print('I was loaded')\ncommands = []")
    assert "I was loaded" in run(tmp_path, "--help").stdout
    assert "I was loaded" not in run(tmp_path, "serve", "--help").stdout


@pytest.mark.parametrize("name", commands.OWN_PACKAGES)
def test_own_packages_come_from_beside_this_one(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise AssertionError('the foreign package was loaded')")
    code = f"from fakebrokers.commands import own_package; print(own_package({name!r}).__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert Path(done.stdout.strip()) == ROOT / name / "__init__.py"


def test_a_foreign_package_that_was_first_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = ModuleType("conformance")
    foreign.__path__ = [str(tmp_path / "conformance")]
    monkeypatch.setitem(sys.modules, "conformance", foreign)
    with pytest.raises(UsageError, match=f"foreign package 'conformance' was imported from {tmp_path}"):
        own_package("conformance")


def test_a_package_that_is_not_there() -> None:
    with pytest.raises(ModuleNotFoundError, match="there is no package 'nowhere_to_be_found'"):
        own_package("nowhere_to_be_found")


def test_what_this_installation_offers_can_be_loaded() -> None:
    assert extra_commands().problems == []
