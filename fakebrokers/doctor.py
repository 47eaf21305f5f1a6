"""``fakebrokers doctor``: what is installed, what is missing, how to get it.

What is needed is read from the installed package's own metadata, so it cannot go stale.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

import click
import msgspec
from packaging.requirements import Requirement

from fakebrokers import __version__
from fakebrokers.commands import OWN_DISTRIBUTION, extra_commands
from fakebrokers.protocol import find_protocol, fixture_name, is_available, protocol_names

#: Extras that a user need not read about: the sum of the others, and the tools of this project's authors.
LEFT_OUT = ("all", "dev")


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
    """A protocol, and whether this version can serve it; the port is 0 if it cannot."""

    protocol: str
    fixture: str
    default_port: int
    available: bool


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
        fakes=[_fake(name) for name in protocol_names()],
        packages=packages,
        programs=[_java(), _node()],
        problems=extra_commands().problems,
    )


def print_json(findings: Findings) -> None:
    """One JSON document with the fields of `Findings`."""
    click.echo(msgspec.json.format(msgspec.json.encode(findings), indent=2))


def print_tables(findings: Findings) -> None:
    """The same for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(f"fakebrokers {findings.version}, Python {findings.python}, {findings.platform}\n")

    fakes = Table("protocol", "pytest fixture", "usual port", "", box=None, pad_edge=False)
    for fake in findings.fakes:
        state = "[green]ready[/]" if fake.available else "[yellow]not in this version[/]"
        fakes.add_row(fake.protocol, fake.fixture, str(fake.default_port or ""), state)
    console.print(fakes, "")

    needs = Table("needed", "for", "version", "installed", "how to get it", box=None, pad_edge=False)
    for package in findings.packages:
        purpose = ", ".join(package.extras) or "everything"
        needs.add_row(package.name, purpose, package.needed, *_verdict(package))
    for program in findings.programs:
        needs.add_row(program.name, program.purpose, program.needed, *_verdict(program))
    console.print(needs, "")

    for problem in findings.problems:
        console.print(problem, "", markup=False)
    if not findings.packages:
        console.print(f"[red]{OWN_DISTRIBUTION} lies here, but is not installed.[/] Cure: pip install -e .")
    elif findings.healthy:
        console.print("[green]The fakes can run.[/]")
    else:
        console.print(f"[red]The fakes cannot run.[/] Cure: pip install --upgrade {OWN_DISTRIBUTION}")


def _verdict(item: Package | Program) -> tuple[str, str]:
    """The last two cells of a row."""
    if not item.cure:
        return f"[green]{item.installed}[/]", ""
    return f"[yellow]{item.installed or 'missing'}[/]", item.cure.replace("[", r"\[")


def _fake(name: str) -> Fake:
    available = is_available(name)
    return Fake(name, fixture_name(name), find_protocol(name).port if available else 0, available)


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
    target = f"'{OWN_DISTRIBUTION}[{extras[0]}]'" if extras else OWN_DISTRIBUTION
    cure = "" if fine else f"pip install --upgrade {target}"
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
