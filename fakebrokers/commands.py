"""How other packages add commands to ``fakebrokers``, and the exit codes that all commands share.

A package lists its commands in the entry-point group ``fakebrokers.commands``; each entry names a
sequence of `click.Command`. A command returns its exit code, or None for 0. A package with many commands
lists each as a `Deferred`, so that ``--help`` and the other commands do not wait for its imports.

`conformance` and `scenarios` are generic names, and a project under test may have folders called the
same. So the packages of our own distribution are loaded by place, beside this package, and a foreign
one that was there first is an error, never used by mistake.
"""

from __future__ import annotations

import re
import sys
from enum import IntEnum
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import NamedTuple

import click

from fakebrokers.errors import UsageError
from fakebrokers.extras import installing
from fakebrokers.files import reserved

GROUP = "fakebrokers.commands"
OWN_DISTRIBUTION = "fakebrokers"
OWN_PACKAGES = ("conformance", "scenarios")


class ExitCode(IntEnum):
    """What a command tells the shell; of several that apply, the first of 64, 3, 1, 2, 4."""

    OK = 0  #: done; conformant
    FAILED = 1  #: a MUST failed
    INCONCLUSIVE = 2  #: a requirement was never exercised
    HARNESS = 3  #: this program's own failure, or its installation's
    REGRESSION = 4  #: worse than the baseline
    USAGE = 64  #: wrong usage


class Deferred(click.Command):
    """A command that is loaded when somebody runs it, or asks for its own help.

    Args:
        name: Of the command.
        place: Where it is, ``module:attribute``.
        about: The first sentence of its help, for the list of commands.
    """

    def __init__(self, name: str, place: str, about: str) -> None:
        super().__init__(name, help=about)
        self.place = place

    def load(self) -> click.Command:
        """The command itself."""
        command: click.Command = resolve_name(self.place)
        return command


class ExtraCommands(NamedTuple):
    """What the entry points gave: commands by name, and a sentence for each that failed to load."""

    commands: dict[str, click.Command]
    problems: list[str]


def extra_commands() -> ExtraCommands:
    """Load the commands of all installed packages."""
    found = ExtraCommands({}, [])
    for entry in entry_points(group=GROUP):
        try:
            if _distribution(entry) == OWN_DISTRIBUTION:
                for name in OWN_PACKAGES:
                    own_package(name)
            found.commands.update({command.name: command for command in entry.load()})
        except Exception as error:  # whatever a foreign package raises must not break the other commands
            found.problems.append(_problem(entry, error))
    return found


def own_package(name: str) -> ModuleType:
    """The package `name` of our own distribution, whatever the current folder or PYTHONPATH offer.

    Raises:
        ModuleNotFoundError: The installation lacks it.
        UsageError: Another package of that name was imported before.
    """
    root = Path(__file__).resolve().parent.parent
    if name not in sys.modules:
        spec = PathFinder.find_spec(name, [str(root)])
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(f"there is no package {name!r} in {root}", name=name)
        module = sys.modules[name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    module = sys.modules[name]
    place = Path(
        next(iter(getattr(module, "__path__", ())), getattr(module, "__file__", None) or "")
    ).resolve()
    if place.parent != root:
        raise UsageError(
            f"a foreign package {name!r} was imported from {place}; ours is in {root}: "
            "rename that one, or import fakebrokers.suite before it"
        )
    return module


def missing_package(error: Exception) -> str | None:
    """The package that somebody else has to supply, if the error says that one is not installed."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    name = error.name.partition(".")[0]
    return None if name in ("fakebrokers", *OWN_PACKAGES) else name


def _problem(entry: EntryPoint, error: Exception) -> str:
    """One sentence on what failed, and one on the cure."""
    distribution = _distribution(entry)
    if distribution == OWN_DISTRIBUTION and isinstance(error, ModuleNotFoundError):
        return f"The commands that judge clients come with the suite: {installing('suite', here=True)}"
    if distribution != OWN_DISTRIBUTION:
        cure = f"Update {distribution}, or uninstall it."
    elif isinstance(error, UsageError):
        cure = "Start fakebrokers from another folder, without PYTHONPATH."
    else:
        cure = f"Install it again: {installing('suite', here=True)} --force-reinstall"
    return (
        f"The commands in {entry.value!r} of the package {distribution} could not be loaded: "
        f"{type(error).__name__}: {error}. {cure}"
    )


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "(unknown)"


def reserve(folder: Path | None) -> None:
    """`fakebrokers.files.reserved` until the command has ended."""
    if folder is not None:
        click.get_current_context().with_resource(reserved(folder))


def seed_range(text: str) -> tuple[int, int]:
    """The first and the last seed of ``A..B``, or of one number.

    Raises:
        UsageError: It is none.
    """
    found = re.fullmatch(r"(\d{1,18})(?:\.\.(\d{1,18}))?", text)
    if found is None:
        raise UsageError(f"--seeds: expected A..B, got {text!r}")
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise UsageError(f"--seeds: expected A..B with A up to B, got {text!r}")
    return first, last
