"""``fakebrokers doctor``: what is installed, what is missing, how to get it.

What is needed is read from the installed package's own metadata, so it cannot go stale.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from packaging.requirements import Requirement

from fakebrokers.commands import OWN_DISTRIBUTION, extra_commands
from fakebrokers.extras import installing
from fakebrokers.protocol import find_protocol, fixture_name, is_available, protocol_names
from fakebrokers.version import __version__

if TYPE_CHECKING:
    from rich.table import Table

#: Extras that a user need not read about: the sum of the others, and the tools of this project's authors.
LEFT_OUT = ("all", "browser", "compiled", "dev", "docs", "test", "test-fakes")


class Package(msgspec.Struct, frozen=True):
    """A Python package that we may need.

    Attributes:
        extras: The groups that it belongs to; none for the core.
        needed: Accepted versions, such as ``>=3.9``.
        installed: The version that is there, or None.
        cure: What to type when it is missing or too old, else "".
    """

    name: str
    extras: list[str]
    needed: str
    installed: str | None
    cure: str


class Program(msgspec.Struct, frozen=True):
    """A program outside Python that we may need; the attributes are those of `Package`."""

    name: str
    purpose: str
    needed: str
    installed: str | None
    cure: str


class Fake(msgspec.Struct, frozen=True):
    """A protocol, and whether this version can serve it; the port is 0 if it cannot.

    Attributes:
        cure: What to type when a package that this fake alone needs is missing or too old, else "".
    """

    protocol: str
    fixture: str
    default_port: int
    available: bool
    cure: str = ""


class Findings(msgspec.Struct, frozen=True):
    """Everything that the doctor found.

    Attributes:
        healthy: Whether the core is complete, so that the fakes can run.
        problems: Commands of other packages that could not be loaded, a sentence each.
    """

    version: str
    python: str
    platform: str
    healthy: bool
    fakes: list[Fake]
    packages: list[Package]
    programs: list[Program]
    problems: list[str]


def examine() -> Findings:
    """Look at this installation. Starts ``java -version`` and ``node --version`` if they exist."""
    packages = list(_packages())
    return Findings(
        version=__version__,
        python=platform.python_version(),
        platform=platform.platform(terse=True),
        healthy=bool(packages) and not any(package.cure and not package.extras for package in packages),
        fakes=[_fake(name, packages) for name in protocol_names()],
        packages=packages,
        programs=[_java(), _node()],
        problems=extra_commands().problems,
    )


def print_json(findings: Findings) -> None:
    """One JSON document with the fields of `Findings`."""
    click.echo(msgspec.json.format(msgspec.json.encode(findings), indent=2))


def print_tables(findings: Findings) -> None:
    """The same for people. What is to be typed has lines of its own, which are never cut."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"fakebrokers {findings.version}, Python {findings.python}, {findings.platform}\n")

    fakes = _table("protocol", "pytest fixture", "usual port", "")
    for fake in findings.fakes:
        state = "[yellow]not in this version[/]"
        if fake.available:
            state = "[yellow]a package is missing, see below[/]" if fake.cure else "[green]ready[/]"
        fakes.add_row(fake.protocol, fake.fixture, str(fake.default_port or ""), state)
    console.print(fakes, "")

    needs = _table("needed", "for", "version", "installed")
    cures: dict[str, list[str]] = {}
    items: list[Package | Program] = [*findings.packages, *findings.programs]
    for item in items:
        purpose = item.purpose if isinstance(item, Program) else ", ".join(item.extras) or "everything"
        needs.add_row(item.name, purpose, item.needed, _found(item))
        if item.cure:
            cures.setdefault(item.cure, []).append(item.name)
    console.print(needs, "")
    for cure, names in cures.items():
        console.print(f"To get {', '.join(names)}:\n  {cure}", markup=False)
    if cures:
        console.print()

    for problem in findings.problems:
        console.print(problem, "", markup=False)
    if not findings.packages:
        console.print(f"[red]{OWN_DISTRIBUTION} is here, but is not installed.[/] Cure: pip install -e .")
    elif findings.healthy:
        console.print("[green]The fakes can run.[/]")
    else:
        console.print("[red]The fakes cannot run.[/] Cure:", installing(here=True).replace("[", r"\["))


def _table(*titles: str) -> Table:
    """Columns that are folded where there is no room, never cut."""
    from rich.table import Column, Table

    return Table(*[Column(title, overflow="fold") for title in titles], box=None, pad_edge=False)


def _found(item: Package | Program) -> str:
    """The last cell of a row."""
    if not item.cure:
        return f"[green]{item.installed}[/]"
    return f"[yellow]{item.installed or 'missing'}[/]"


def _fake(name: str, packages: Sequence[Package]) -> Fake:
    available = is_available(name)
    cure = next((each.cure for each in packages if each.cure and name in each.extras), "")
    return Fake(name, fixture_name(name), find_protocol(name).port if available else 0, available, cure)


def _packages() -> Iterator[Package]:
    """What our own metadata asks for, the core first; nothing if we are not installed."""
    try:
        about = metadata(OWN_DISTRIBUTION)
    except PackageNotFoundError:
        return
    requirements = [Requirement(text) for text in about.get_all("Requires-Dist", [])]
    for requirement in requirements:
        if requirement.marker is None:
            yield _package(requirement, [])
    extras = [extra for extra in about.get_all("Provides-Extra", []) if extra not in LEFT_OUT]
    members = {extra: {each.name: each for each in requirements if _belongs(each, extra)} for extra in extras}
    extras.sort(key=lambda extra: len(members[extra]))  # the cure names the extra that brings the least
    named = {name: each for extra in extras for name, each in members[extra].items()}
    for name, requirement in named.items():
        yield _package(requirement, [extra for extra in extras if name in members[extra]])


def _belongs(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is not None and requirement.marker.evaluate({"extra": extra})


def _package(requirement: Requirement, extras: list[str]) -> Package:
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        installed = None
    fine = installed is not None and requirement.specifier.contains(installed, prereleases=True)
    cure = "" if fine else installing(*extras[:1], here=True)
    return Package(requirement.name, extras, str(requirement.specifier), installed, cure)


def _java() -> Program:
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else "java"
    installed = _version_of(command, "-version")
    # Versions before 9 call themselves 1.8 and the like: too old in any case.
    fine = installed is not None and int(installed.partition(".")[0]) >= 17
    cure = "" if fine else "a Java runtime, such as Debian's openjdk-17-jre-headless"
    return Program("java", "spark", ">=17", installed, cure)


def _node() -> Program:
    installed = _version_of("node", "--version")
    cure = "" if installed else "Node.js, such as Debian's nodejs and npm"
    return Program("node", "JavaScript clients", "", installed, cure)


def _version_of(command: str, option: str) -> str | None:
    """The first version number that a program prints about itself, or None if it cannot be run."""
    if shutil.which(command) is None:
        return None
    try:
        done = subprocess.run([command, option], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    number = re.search(r"\d+(\.\d+)*", done.stderr + done.stdout)
    return number.group() if number else None
