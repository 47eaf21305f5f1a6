"""The built wheels, in clean virtual environments, beside a project that has folders named like ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from conformance.clients.mutants.kills import known_kills
from fakebrokers import __version__

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.full

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
from conformance.clients.adapter import kit
from conformance.clients.mutants.registry import find_mutant

Adapter = find_mutant("pzq", "%s").adapter

if __name__ == "__main__":
    kit.run(Adapter())
""",
    "known.toml": """
protocol = "pzq"

[[defect]]
id = "broken"
cause = "it is broken on purpose"
rows = ["PZQ-1.03"]
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
    expect.outcome(result, "acked", "it is stored", id="it-is-stored")
""",
}


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run to the end, with nothing of the checkout on the path; what was printed."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Our wheels, the one that is light and that of the suite, built without a download."""
    pytest.importorskip("hatchling", reason="missing: hatchling (pip install hatchling)")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    for project in (ROOT, ROOT / "conformance"):
        run(*build, project)
    [light] = folder.glob("fakebrokers-*.whl")
    [suite] = folder.glob("fakebrokers_suite-*.whl")
    return light, suite


def environment(folder: Path, *what: str | Path) -> Path:
    """The folder of programs of a virtual environment that holds this and what it asks for."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    pip = [programs / "python", "-m", "pip", "install", "--quiet", *what]
    done = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=240)
    if done.returncode != 0:
        pytest.skip(f"missing: a package index that pip can reach ({done.stderr.strip().splitlines()[-1]})")
    return programs


@pytest.fixture(scope="module")
def light(wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with what everybody gets."""
    return environment(tmp_path_factory.mktemp("venv"), wheels[0])


@pytest.fixture(scope="module")
def clean(wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the suite."""
    return environment(tmp_path_factory.mktemp("venv"), f"{wheels[0]}[suite]", wheels[1])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_what_is_in_the_wheels(wheels: tuple[Path, Path]) -> None:
    found: dict[str, set[str]] = {}
    for wheel in wheels:
        names = ZipFile(wheel).namelist()
        info = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
        for name in names:
            assert "node_modules" not in name and "__pycache__" not in name
            found.setdefault(name.partition("/")[0].replace(info, "info"), set()).add(name)
        assert f"{info}/METADATA" in names
    assert set(found) == {"conformance", "fakebrokers", "info", "scenarios"}
    assert {name.partition("/")[0] for name in ZipFile(wheels[0]).namelist() if ".dist-info" not in name} == {
        "fakebrokers"
    }
    assert "fakebrokers/py.typed" in found["fakebrokers"]
    assert any(name.endswith("licenses/LICENSE") for name in found["info"])
    assert "conformance/known-findings/README.md" in found["conformance"]
    assert "conformance/pyproject.toml" not in found["conformance"]
    source = {
        str(path.relative_to(ROOT))
        for package in ("conformance", "fakebrokers", "scenarios")
        for path in (ROOT / package).rglob("*.py")
        if "node_modules" not in path.parts
    }
    assert source <= set().union(*found.values())


def test_the_two_wheels_need_each_other_in_the_same_version(wheels: tuple[Path, Path]) -> None:
    asked = []
    for wheel in wheels:
        [name] = [each for each in ZipFile(wheel).namelist() if each.endswith("METADATA")]
        lines = ZipFile(wheel).read(name).decode().splitlines()
        asked.append([line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")])
    core, extras = [each for each in asked[0] if ";" not in each], [each for each in asked[0] if ";" in each]
    assert [re.split("[<=>]", each)[0] for each in core] == ["msgspec", "pytest"]
    suite = [each for each in extras if each.startswith("fakebrokers-suite")]
    assert {
        f"fakebrokers-suite=={__version__}; extra == '{name}'" for name in ("all", "spark", "suite")
    } <= set(suite)
    assert asked[1] == [f"fakebrokers[suite]=={__version__}"]


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


def packages(programs: Path) -> set[str]:
    """The names of what is installed."""
    listed = run(programs / "python", "-m", "pip", "list", "--format=freeze").lower()
    return {line.partition("=")[0] for line in listed.splitlines()}


def test_what_everybody_gets_is_msgspec_and_pytest(light: Path) -> None:
    pytest_itself = {"iniconfig", "packaging", "pluggy", "pygments"}
    assert packages(light) - pytest_itself - {"pip", "setuptools"} == {"fakebrokers", "msgspec", "pytest"}


def test_the_suite_brings_no_spark(clean: Path) -> None:
    assert {"fakebrokers", "fakebrokers-suite", "pyzmq", "aiohttp", "pyarrow"} <= packages(clean)
    assert not packages(clean) & {"pyspark", "pandas", "allure-pytest", "hypothesis"}


def test_the_light_one_runs_a_test_and_says_what_the_rest_takes(light: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "from fakebrokers.errors import UsageError\n"
        "def test_it(rabbitmq_stream, narconi, moleculer):\n"
        "    rabbitmq_stream.create_stream('orders')\n"
        "    with pytest.raises(UsageError, match='PZQ needs zmq: pip install .*fakebrokers.*pzq'):\n"
        "        from fakebrokers import PZQ\n"
    )
    assert " 1 passed in " in run(light / "python", "-m", "pytest", cwd=tmp_path)
    done = subprocess.run(
        [light / "fakebrokers", "doctor"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 3
    assert re.search(r"the command line needs click: pip install '.*fakebrokers-.*\[cli\]'", done.stderr)
