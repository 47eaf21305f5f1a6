"""All packages of others that this project is built and tested with have a version, and most a checksum."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

TOP = Path(__file__).parents[1]
CONSTRAINTS = TOP / "ci" / "constraints.txt"
POM = "{http://maven.apache.org/POM/4.0.0}"


def tracked(name: str) -> list[Path]:
    """The files of that name."""
    found = TOP.rglob(name)
    skipped = {".venv", "node_modules", "build"}
    return sorted(path for path in found if not skipped & {*path.relative_to(TOP).parts})


def required() -> Iterator[Requirement]:
    """What pyproject.toml asks for, in all extras."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    for texts in (project["dependencies"], *project["optional-dependencies"].values()):
        for text in texts:
            if (found := Requirement(text)).name != "fakebrokers":
                yield found


def test_each_python_package_has_a_version_that_the_project_takes() -> None:
    locked: dict[str, list[Requirement]] = {}
    for line in CONSTRAINTS.read_text("utf-8").splitlines():
        if line and not line.lstrip().startswith("#"):
            found = Requirement(line)
            locked.setdefault(canonicalize_name(found.name), []).append(found)
    for wanted in required():
        versions = locked.get(canonicalize_name(wanted.name))
        assert versions, f"{wanted.name} has no version: run ci/lock"
        for each in versions:
            (pin,) = each.specifier
            assert pin.operator == "==", each
            assert wanted.specifier.contains(Version(pin.version), prereleases=True), f"{each}: run ci/lock"


def test_the_lanes_install_by_them() -> None:
    installs = [line for line in (TOP / "ci" / "setup.sh").read_text("utf-8").splitlines() if '"$@"' in line]
    packages = [line for line in installs if "pip install" in line]
    assert packages and all("--constraint ci/constraints.txt" in line for line in packages)


@pytest.mark.parametrize("path", tracked("package.json"), ids=lambda path: path.parent.name)
def test_npm(path: Path) -> None:
    wanted = json.loads(path.read_text("utf-8"))
    locked = json.loads(path.with_name("package-lock.json").read_text("utf-8"))["packages"]
    for group in ("dependencies", "devDependencies", "optionalDependencies"):
        assert wanted.get(group, {}) == locked[""].get(group, {}), "run ci/lock"
    others = [each for name, each in locked.items() if name and not each.get("link")]
    assert others and all("integrity" in each for each in others)


@pytest.mark.parametrize("path", tracked("go.mod"), ids=lambda path: path.parent.name)
def test_go(path: Path) -> None:
    wanted = re.findall(r"^(?:require )?\s*([\w.-]+\.[\w.-]+/\S+) (v\S+)", path.read_text("utf-8"), re.M)
    if wanted:
        sums = path.with_name("go.sum").read_text("utf-8")
        assert not [name for name, version in wanted if f"{name} {version}/go.mod h1:" not in sums]


@pytest.mark.parametrize("path", tracked("Cargo.lock"), ids=lambda path: path.parent.name)
def test_cargo(path: Path) -> None:
    manifest = tomllib.loads(path.with_name("Cargo.toml").read_text("utf-8"))
    packages = tomllib.loads(path.read_text("utf-8"))["package"]
    assert {*manifest.get("dependencies", {})} <= {each["name"] for each in packages}
    assert all("checksum" in each for each in packages if "source" in each)


def test_crates_are_locked_where_somebody_builds_a_program() -> None:
    """Not beside a file to copy, nor for a library, whose lock nobody reads."""
    places = {str(path.parent.relative_to(TOP)) for path in tracked("Cargo.lock")}
    assert places == {"conformance/clients/adapters/rabbitmq-stream-rust", "docs/findings/rust"}


@pytest.mark.parametrize("path", tracked("pom.xml"), ids=lambda path: path.parent.name)
def test_maven(path: Path) -> None:
    """Exact versions of packages and plugins; the build refuses jars with other checksums."""
    root = ElementTree.parse(path).getroot()
    versions = {}
    for kind in ("dependency", "plugin"):
        for each in root.iter(f"{POM}{kind}"):
            version = each.findtext(f"{POM}version", "")
            assert re.fullmatch(r"[\w.+-]*\d[\w.+-]*", version), each.findtext(f"{POM}artifactId")
            if kind == "dependency":
                group, name = (each.findtext(f"{POM}{part}") for part in ("groupId", "artifactId"))
                versions[f"{group}:{name}"] = version
    locked = json.loads(path.with_name("lockfile.json").read_text("utf-8"))
    assert {
        f"{each['groupId']}:{each['artifactId']}": each["version"] for each in locked["dependencies"]
    } == versions
    assert all(len(each["checksum"]) == 64 for each in _all(locked["dependencies"]))
    (plugin,) = (
        each for each in root.iter(f"{POM}plugin") if each.findtext(f"{POM}artifactId") == "maven-lockfile"
    )
    assert plugin.findtext(f".//{POM}goal") == "validate"


def _all(dependencies: list[dict[str, object]]) -> Iterator[dict[str, str]]:
    for each in dependencies:
        yield each  # type: ignore[misc]
        yield from _all(each["children"])  # type: ignore[arg-type]


def test_the_command_that_writes_them_is_a_script() -> None:
    subprocess.run(["bash", "-n", str(TOP / "ci" / "lock")], check=True)
