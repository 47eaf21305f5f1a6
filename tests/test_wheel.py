"""The built wheel, in a clean virtual environment, beside a project that has folders named like ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from conformance.mutants.kills import known_kills

ROOT = Path(__file__).parents[1]

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

#: A project under test; nothing of it may get in our way, and we not in its.
PROJECT = {
    "conformance/__init__.py": "WHOSE = 'theirs'\n",
    "scenarios/__init__.py": "WHOSE = 'theirs'\n",
    "tests/__init__.py": "",
    "tests/helpers.py": "WHOSE = 'theirs'\n",
    "tests/test_project.py": """
import socket
import sys

import conformance
import scenarios
from tests import helpers


def test_names_are_theirs(rabbitmq_stream):
    assert conformance.WHOSE == scenarios.WHOSE == helpers.WHOSE == "theirs"
    assert not [name for name in sys.modules if name.startswith(("conformance.", "scenarios."))]


def test_the_fixture_works(rabbitmq_stream):
    with socket.create_connection((rabbitmq_stream.host, rabbitmq_stream.port)):
        rabbitmq_stream.wait_for(kind="accepted")
""",
}

#: The repository of a client: nothing but its adapter, one line for each way to name it, and a known failure.
CLIENT = {
    "test_conformance.py": """
from conformance.pytest import scenarios

from adapter import Adapter

test_child = scenarios("python adapter.py", "PZQ-1.01", "PZQ-1.03", protocol="pzq", expect="known.toml")
test_in_process = scenarios(Adapter, "PZQ-1.01", "PZQ-1.03", expect="known.toml")
test_bundled = scenarios("reference-pzq", "PZQ-1.01", "PZQ-2.01")
test_own = scenarios("reference-pzq", "OWN", folders="own")
""",
    "adapter.py": """
from conformance.adapter import kit
from conformance.mutants.registry import find_mutant

Adapter = find_mutant("pzq", "%s").adapter

if __name__ == "__main__":
    kit.run(Adapter())
""",
    "known.toml": """
[[known]]
id = "PZQ-1.03"
protocol = "pzq"
cause = "it is broken on purpose"
""",
    "own/catalogue/own.toml": """
family = "OWN"
title = "Ours"
protocol = "pzq"
sections = [{ id = "OWN-1", title = "One" }]

[[scenarios]]
id = "OWN-1.01"
title = "One"
level = "MUST"
severity = "low"
""",
    "own/one.py": """
from conformance.suite import scenario


@scenario("OWN-1.01")
async def one(broker, client, expect):
    await client.connected()
    result = await client.publish("orders", b"tea")
    expect.outcome(result, "acked", "it is stored")
""",
}


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run to the end, with nothing of the checkout on the path; what was printed."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our wheel, built without a download."""
    pytest.importorskip("hatchling", reason="missing: hatchling (pip install hatchling)")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    run(*build, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a virtual environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    pip = [programs / "python", "-m", "pip", "install", "--quiet", wheel]
    done = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=240)
    if done.returncode != 0:
        pytest.skip(f"missing: a package index that pip can reach ({done.stderr.strip().splitlines()[-1]})")
    return programs


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_what_is_in_the_wheel(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    info = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"conformance", "fakebrokers", "scenarios", info}
    assert not [name for name in names if "node_modules" in name or "__pycache__" in name]
    assert "fakebrokers/py.typed" in names
    assert f"{info}/licenses/LICENSE" in names
    source = {
        str(path.relative_to(ROOT))
        for package in ("conformance", "fakebrokers", "scenarios")
        for path in (ROOT / package).rglob("*.py")
        if "node_modules" not in path.parts
    }
    assert source <= set(names)


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_a_project_with_the_same_folder_names(clean: Path, project: Path, mode: str) -> None:
    output = run(clean / "python", "-m", "pytest", f"--import-mode={mode}", cwd=project)
    assert " 2 passed in " in output


def test_commands_are_ours_in_such_a_project(clean: Path, project: Path) -> None:
    """`python -m` puts the current folder before everything else, which is the hard case."""
    for command in ([clean / "fakebrokers"], [clean / "python", "-m", "fakebrokers"]):
        assert "could not be loaded" not in run(*command, "--help", cwd=project)
        assert "The fakes can run." in run(*command, "doctor", cwd=project)


def test_a_client_of_its_own_repository(clean: Path, tmp_path: Path) -> None:
    """A bundled client, one that fails as a child process and in process, and scenarios of their own."""
    killer = known_kills()["PZQ-1.03", "pzq", ""][0]
    for name, text in CLIENT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.replace("%s", killer))
    output = run(clean / "python", "-m", "pytest", "-q", cwd=tmp_path)
    assert re.search(r"^6 passed, 2 xfailed in ", output, re.MULTILINE), output
    who = ("--client", "reference-pzq", "--scenarios", "own", "OWN")
    assert "exit code 0" in run(clean / "fakebrokers", "conform", *who, cwd=tmp_path)


def test_a_light_install_brings_nothing_heavy(clean: Path) -> None:
    listed = run(clean / "python", "-m", "pip", "list", "--format=freeze").lower()
    names = {line.partition("=")[0] for line in listed.splitlines()}
    assert {"fakebrokers", "msgspec", "pyzmq", "aiohttp"} <= names
    assert not names & {"pyspark", "pyarrow", "pandas", "allure-pytest", "hypothesis", "cryptography"}
