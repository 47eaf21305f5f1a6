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
from tests.eventually import PATIENCE_S


class About(dict[str, list[str]]):
    """Metadata of a package, as far as the doctor looks at it."""

    def get_all(self, name: str, default: list[str]) -> list[str]:
        return self.get(name, default)


def pretend(monkeypatch: pytest.MonkeyPatch, needs: list[str], installed: dict[str, str]) -> None:
    extras = ["all", "dev", "spark", "suite", "tls"]
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
        doctor.Package("trustme", ["tls", "suite"], ">=1", None, "pip install --upgrade 'fakebrokers[tls]'"),
        doctor.Package("hypothesis", ["suite"], "", None, "pip install --upgrade 'fakebrokers[suite]'"),
    ]


def test_a_core_package_that_is_too_old(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, ["click>=8"], {"click": "7.9"})
    with pytest.raises(SystemExit) as exit_:
        main(["doctor"])
    assert exit_.value.code == ExitCode.HARNESS
    assert "The fakes cannot run. Cure: pip install --upgrade fakebrokers" in capsys.readouterr().out


def test_not_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def metadata(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "metadata", metadata)
    with pytest.raises(SystemExit) as exit_:
        main(["doctor"])
    assert exit_.value.code == ExitCode.HARNESS
    assert "pip install -e ." in capsys.readouterr().out


def test_cures_are_printed_as_they_are_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    pretend(monkeypatch, ["click", "pyspark; extra == 'spark'"], {"click": "8.1"})
    with pytest.raises(SystemExit) as exit_:
        main(["doctor"])
    assert exit_.value.code == ExitCode.OK
    assert "pip install --upgrade 'fakebrokers[spark]'" in capsys.readouterr().out


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
