"""Which client adapters come with the suite, how they are started, and whether they can run here."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from conformance.clients.packages import Package, fetched
from fakebrokers.errors import UsageError, instead_of

HERE = Path(__file__).parent
ROOT = HERE.parents[2]  #: where Python finds `conformance`, which adapters in Python import
_NO_PROGRAM = ": not on the PATH"


class Needs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an adapter cannot do without.

    Attributes:
        python: Distributions in the suite's own environment.
        programs: On the PATH.
        npm: Packages in the adapter's ``node_modules``.
        go: Modules of the adapter's ``go.mod``; they are built in, so `files` names the program.
        maven: ``group:artifact`` in the adapter's ``pom.xml``; `files` names what is compiled.
        cargo: Crates of the adapter's ``Cargo.lock``; they are built in, so `files` names the program.
        files: Inside the adapter's folder, such as something that has to be compiled.
    """

    python: list[str] = []
    programs: list[str] = []
    npm: list[str] = []
    go: list[str] = []
    maven: list[str] = []
    cargo: list[str] = []
    files: list[str] = []


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An ``adapter.toml``, or an ``adapter-VERSION.toml`` where one adapter is for several versions.

    In `command` and `install`, ``{python}`` and ``{folder}`` are filled in. One that is `nightly` takes
    minutes to judge: ``ci/conform`` does it with ``--full``, or where it is named. One that is
    `simulated` does everything through asyncio's running loop, so that it also runs on virtual time.
    `protocol_modules` are the library's modules or packages of which coverage is measured.
    """

    name: str
    protocols: list[str]
    library: str
    tested: str
    language: str
    command: list[str]
    install: str
    needs: Needs = Needs()
    aliases: list[str] = []
    nightly: bool = False
    simulated: bool = False
    protocol_modules: list[str] = []


class Client(msgspec.Struct, frozen=True):
    """A bundled client.

    Attributes:
        library: Name of the library in its registry.
        version: The installed version, or None.
        tested: The version that the adapter was written for.
        command: How to start the adapter.
        missing: What has to be done before it can run; empty if it can.
        packages: The folder of the version that was asked for; empty for that of this environment.
        package: The library, as its package manager knows it.
        simulated: It also runs on the loop of a simulation; see `stock`.
        protocol_modules: Of which coverage is measured; see `conformance.coverage`.
        more_env: Of the environment of the command, besides what its language takes.
    """

    name: str
    protocols: list[str]
    library: str
    version: str | None
    tested: str
    language: str
    command: list[str]
    install: str
    missing: list[str]
    folder: str
    aliases: list[str]
    packages: str = ""
    nightly: bool = False
    package: Package = Package("", "", "", "")
    simulated: bool = False
    protocol_modules: list[str] = []
    more_env: dict[str, str] = {}

    @property
    def asked(self) -> str:
        """What `find` finds it by."""
        return f"{self.name}=={self.version}" if self.packages else self.name

    @property
    def runnable(self) -> bool:
        """Whether it can run here."""
        return not self.missing

    @property
    def env(self) -> dict[str, str]:
        """What to add to the environment of the command."""
        if self.language != "python":
            return self.more_env
        paths = (self.packages, str(ROOT), os.environ.get("PYTHONPATH"))
        return {"PYTHONPATH": os.pathsep.join(path for path in paths if path), **self.more_env}

    def as_json(self) -> dict[str, Any]:
        """A row of ``fakebrokers clients --json``."""
        shown = ("name", "protocols", "library", "version", "language", "runnable", "missing")
        return {member: getattr(self, member) for member in shown}


def bundled(protocol: str | None = None, folder: Path = HERE) -> list[Client]:
    """All bundled clients by name, or those for one protocol."""
    described = [_client(path) for path in _files(folder)]
    return [client for client in described if protocol is None or protocol in client.protocols]


def find(name: str) -> Client:
    """The bundled client of that name, or of ``NAME==VERSION``, which may have to be fetched.

    Raises `UsageError` with the names that there are.
    """
    name, pins, version = name.partition("==")
    descriptions = {path: _described(path.read_text("utf-8")) for path in _files(HERE)}
    for path, described in descriptions.items():
        if name in {described.name, *described.aliases}:
            client = _client(path)
            return _pinned(client, version) if pins else client
    names = (described.name for described in descriptions.values())
    raise UsageError(f"there is no bundled client {name!r}{instead_of(name, names)}")


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/adapter*.toml"))


@cache
def _described(text: str) -> Description:
    return msgspec.convert(tomllib.loads(text), Description)


@cache
def _locked(text: str) -> dict[str, str]:
    """Versions of crates by name, of a ``Cargo.lock``."""
    return {crate["name"]: crate["version"] for crate in tomllib.loads(text)["package"]}


def _pinned(client: Client, version: str) -> Client:
    folder = str(fetched(client.package, version))
    missing = [each for each in client.missing if each.endswith(_NO_PROGRAM)]
    pinned = msgspec.structs.replace(client, version=version, missing=missing, packages=folder)
    if client.package.manager == "pip":
        return pinned
    command = [word.replace(client.folder, folder) for word in client.command]
    return msgspec.structs.replace(pinned, command=command, folder=folder)


def _client(path: Path) -> Client:
    described = _described(path.read_text("utf-8"))
    folder = path.parent
    fill = {"{python}": sys.executable, "{folder}": str(folder)}
    installed = _installed(described, folder)
    needs = described.needs
    needs_packages = bool(needs.python or needs.npm or needs.go or needs.maven or needs.cargo)
    return Client(
        name=described.name,
        protocols=described.protocols,
        library=described.library,
        version=installed.get(described.library, None if needs_packages else described.tested),
        tested=described.tested,
        language=described.language,
        command=[_filled(word, fill) for word in described.command],
        install=_filled(described.install, fill),
        missing=_missing(described, folder, installed, _filled(described.install, fill)),
        folder=str(folder),
        aliases=described.aliases,
        nightly=described.nightly,
        package=_package(described, folder),
        simulated=described.simulated,
        protocol_modules=described.protocol_modules,
    )


def _package(described: Description, folder: Path) -> Package:
    needs, library = described.needs, described.library
    managers = {
        "pip": needs.python,
        "npm": needs.npm,
        "go": needs.go,
        "maven": needs.maven,
        "cargo": needs.cargo,
    }
    for manager, names in managers.items():
        for name in names:  # an adapter for one line of versions has an alias: moleculer-0.14
            if name == library or (manager == "npm" and name.startswith(f"{library}-")):
                return Package(manager, library, name, str(folder))
    return Package("", library, library, str(folder))


def _filled(text: str, fill: Mapping[str, str]) -> str:
    for mark, value in fill.items():
        text = text.replace(mark, value)
    return text


def _installed(described: Description, folder: Path) -> dict[str, str]:
    """Versions of the packages that are needed and there."""
    found = {}
    for name in described.needs.python:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    for name in described.needs.npm:
        manifest = folder / "node_modules" / name / "package.json"
        if manifest.is_file():
            package = json.loads(manifest.read_text("utf-8"))
            found |= dict.fromkeys((name, package["name"]), package["version"])  # two versions have aliases
    if described.needs.go:
        words = [line.split() for line in (folder / "go.mod").read_text("utf-8").splitlines()]
        required = {line[-2]: line[-1].removeprefix("v") for line in words if len(line) > 1}
        found |= {name: required[name] for name in described.needs.go if name in required}
    if described.needs.maven:
        required = _dependencies(folder / "pom.xml")
        found |= {name: required[name] for name in described.needs.maven if name in required}
    if described.needs.cargo:
        versions = _locked((folder / "Cargo.lock").read_text("utf-8"))
        found |= {name: versions[name] for name in described.needs.cargo if name in versions}
    return found


def _dependencies(pom: Path) -> dict[str, str]:
    """Versions by ``group:artifact`` of the dependencies in a ``pom.xml``."""
    space = "{http://maven.apache.org/POM/4.0.0}"
    found = {}
    for each in ElementTree.parse(pom).iter(f"{space}dependency"):
        group, name, number = (each.findtext(space + tag, "") for tag in ("groupId", "artifactId", "version"))
        found[f"{group}:{name}"] = number
    return found


def _missing(described: Description, folder: Path, installed: Mapping[str, str], install: str) -> list[str]:
    needs = described.needs
    missing = [f"{name}{_NO_PROGRAM}" for name in needs.programs if shutil.which(name) is None]
    missing += [
        f"{name}: {install}"
        for name in (*needs.python, *needs.npm, *needs.go, *needs.maven, *needs.cargo)
        if name not in installed
    ]
    missing += [f"{name}: {install}" for name in needs.files if not (folder / name).exists()]
    return missing
