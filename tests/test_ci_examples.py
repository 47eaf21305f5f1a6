"""`ci/examples` are what the two services read, and their commands run in a project outside of this tree.

There is such a project in each language, with an adapter, a file of known failures and a baseline.
The commands are those of the examples, word for word; only the installation of fakebrokers is left out, and
one scenario instead of all is run. The smoke test is run whole once.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fakebrokers.commands import ExitCode
from tests.cargo import missing_cargo

yaml: Any = pytest.importorskip("yaml", reason="missing: yaml (pip install pyyaml)")

TOP = Path(__file__).parents[1]
EXAMPLES = TOP / "ci" / "examples"
FIXTURE = ("github-workflow.yml", "gitlab-fixture.yml")
GATE = ("github-gate.yml", "gitlab-gate.yml")
FIXTURE_NODE = ("github-fixture-node.yml", "gitlab-fixture-node.yml")
GATE_NODE = ("github-gate-node.yml", "gitlab-gate-node.yml")
#: Adapters that are built, by the language that their examples are named after.
BUILT = ("go", "java", "rust")
GATE_BUILT = [(f"github-gate-{name}.yml", f"gitlab-gate-{name}.yml") for name in BUILT]
ALL = (*FIXTURE, *GATE, *FIXTURE_NODE, *GATE_NODE, *(name for names in GATE_BUILT for name in names))


def document(name: str) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    return found


def job(name: str) -> dict[str, Any]:
    """The only job of an example."""
    found = document(name)
    (only,) = (found["jobs"] if name.startswith("github") else found).values()
    assert isinstance(only, dict)
    return only


def commands(name: str) -> list[str]:
    """The shell commands, without the installation."""
    found = job(name)
    steps = [step.get("run") for step in found["steps"]] if "steps" in found else found["script"]
    return [step for step in steps if step and not step.startswith("pip install ")]


def uploaded(name: str) -> set[str]:
    """What is kept of a run."""
    found = job(name)
    if "steps" in found:
        return {step["with"]["path"] for step in found["steps"] if "upload-artifact" in step.get("uses", "")}
    kept = found["artifacts"]
    return {path.rstrip("/") for path in kept.get("paths", ())} | set(kept["reports"].values())


def run(command: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """As a runner does it: bash that stops at the first failure, with the programs of this interpreter."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(TOP), **more}
    env = {
        key: value for key, value in env.items() if not key.startswith(("PYTEST_", "GITHUB_")) or key in more
    }
    bash = ["bash", "-e", "-o", "pipefail", "-c", command]
    return subprocess.run(bash, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_nothing_else_is_there() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_it_has_the_shape_that_the_service_wants(name: str) -> None:
    found = document(name)
    if name.startswith("github"):
        # YAML 1.1 reads `on` as true; the service does not
        assert {"name", "jobs", "permissions"} <= found.keys() and found[True] == ["push", "pull_request"]
        assert all(("run" in step) != ("uses" in step) for step in job(name)["steps"])
        assert all(re.search(r"@v\d+$", step["uses"]) for step in job(name)["steps"] if "uses" in step)
    else:
        assert {"image", "script", "artifacts"} <= job(name).keys()
        assert all(isinstance(line, str) for line in job(name)["script"])
        assert job(name)["artifacts"]["when"] == "always"


@pytest.mark.parametrize(
    "names", [FIXTURE, GATE, FIXTURE_NODE, GATE_NODE, *GATE_BUILT], ids=lambda names: names[0]
)
def test_both_services_run_the_same(names: tuple[str, str]) -> None:
    github, gitlab = (commands(name) for name in names)
    assert [line.replace(" --junitxml junit.xml", "") for line in gitlab] == github


@pytest.mark.full
@pytest.mark.parametrize("name", FIXTURE)
def test_the_fixture_in_a_project(name: str, tmp_path: Path) -> None:
    (tmp_path / "test_client.py").write_text(
        "import socket\n\ndef test_it(rabbitmq_stream):\n"
        "    socket.create_connection((rabbitmq_stream.host, rabbitmq_stream.port), 5).close()\n"
    )
    for command in commands(name):
        done = run(command, tmp_path, CI="")
        assert done.returncode != ExitCode.USAGE, done.stderr
        if "doctor" not in command:  # that one says what the machine lacks
            assert done.returncode == 0, done.stdout + done.stderr
            assert "1 passed" in done.stdout
    assert all((tmp_path / path).exists() for path in (uploaded(name) if "gitlab" in name else ()))


def project(folder: Path, *client: str, known: str = "") -> None:
    """What the examples ask for: the adapter of a client of our own, and the failures that are known."""
    place = folder / "client-gate"
    place.mkdir(exist_ok=True)
    module, *arguments = client
    (place / "adapter.py").write_text(
        f"import runpy, sys\nsys.argv[1:] = {arguments}\nrunpy.run_module({module!r}, run_name='__main__')\n"
    )
    (place / "known-failures.toml").write_text(f"version = 2\n{known}")


def judge(
    name: str, folder: Path, smoke_ids: str = " RMQS-1.01", **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the example's commands on one scenario; how the gate ended."""
    *before, smoke, conform, gate = commands(name)
    assert conform.startswith("fakebrokers conform ") and gate.startswith("fakebrokers gate ")
    assert smoke.startswith(conform.partition(" --expect")[0] + " --set smoke ")
    for command in (*before, smoke + smoke_ids):
        done = run(command, folder)
        assert done.returncode == 0, done.stdout + done.stderr
    done = run(conform.replace(" --report", " RMQS-3.02 --report"), folder)
    assert done.returncode == 0, done.stdout + done.stderr
    if not (folder / "client-gate" / "baseline.json").exists():
        shutil.copy(folder / "report" / "results.json", folder / "client-gate" / "baseline.json")
    return run(gate, folder, **more)


@pytest.mark.full
@pytest.mark.parametrize("name", GATE)
def test_the_gate_in_a_project(name: str, tmp_path: Path) -> None:
    project(tmp_path, "conformance.clients.reference", "rabbitmq-stream")
    done = judge(name, tmp_path, smoke_ids="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert uploaded(name) and all((tmp_path / path).exists() for path in uploaded(name))
    (suite,) = ElementTree.parse(tmp_path / "report" / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")


@pytest.mark.full
def test_the_gate_stops_a_new_failure_and_lets_a_known_one_pass(tmp_path: Path) -> None:
    defective = ("conformance.clients.mutants", "rabbitmq-stream", "confirm-by-position")
    project(tmp_path, *defective)
    summary = tmp_path / "summary.md"
    done = judge("github-gate.yml", tmp_path, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "::error title=failed%3A RMQS-3.02/rabbitmq-stream::" in done.stdout
    assert "| failed | `RMQS-3.02/rabbitmq-stream` | MUST |" in summary.read_text()
    known = 'protocol = "rabbitmq-stream"\n[[defect]]\nid = "x"\ncause = "y"\nrows = ["RMQS-3.02"]\n'
    project(tmp_path, *defective, known=known)
    done = judge("gitlab-gate.yml", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


# the same in Node

NODE = TOP / "conformance" / "helpers" / "node"
CLIENT = TOP / "conformance" / "clients" / "adapters" / "rabbitmq-stream-js"


def node_project(folder: Path) -> None:
    """Its description, and what `npm ci` wants: it depends on nothing, so that nothing is fetched."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"missing: {program} (apt-get install nodejs npm)")
    about = {"name": "shop", "version": "1.0.0"}
    test = "node --test --test-reporter=junit --test-reporter-destination=junit.xml"
    described = {**about, "private": True, "type": "module", "scripts": {"test": test}}
    (folder / "package.json").write_text(json.dumps(described))
    lock = {**about, "lockfileVersion": 3, "requires": True, "packages": {"": about}}
    (folder / "package-lock.json").write_text(json.dumps(lock))


NODE_TEST = """
import assert from "node:assert/strict"
import { once } from "node:events"
import { connect } from "node:net"
import { test } from "node:test"
import { serve } from "./fakebrokers.mjs"

test("a shop that reaches its broker", async () => {
  const broker = await serve("rabbitmq-stream")
  const socket = connect(broker.port, broker.host)
  await once(socket, "connect")
  socket.destroy()
  assert.ok(await broker.call("create_stream", { name: "orders" }) !== null)
  await broker.stop()
})
"""


@pytest.mark.full
@pytest.mark.parametrize("name", FIXTURE_NODE)
def test_the_fixture_in_a_node_project(name: str, tmp_path: Path) -> None:
    node_project(tmp_path)
    (tmp_path / "test").mkdir()
    shutil.copy(NODE / "fakebrokers.mjs", tmp_path / "test")
    (tmp_path / "test" / "shop.test.mjs").write_text(NODE_TEST)
    for command in commands(name):
        done = run(command, tmp_path, CI="")
        assert done.returncode != ExitCode.USAGE, done.stderr
        if "doctor" not in command:  # that one says what the machine lacks
            assert done.returncode == 0, done.stdout + done.stderr
    told = ElementTree.parse(tmp_path / "junit.xml").getroot()
    names = [case.get("name") for case in told.iter("testcase")]
    assert "a shop that reaches its broker" in names and not list(told.iter("failure"))
    assert all((tmp_path / path).exists() for path in (uploaded(name) if "gitlab" in name else ()))


@pytest.mark.full
@pytest.mark.parametrize("name", GATE_NODE)
def test_the_gate_in_a_node_project(name: str, tmp_path: Path) -> None:
    """The adapter is that of a stock client, copied out of the tree with what it imports."""
    node_project(tmp_path)
    if not (CLIENT / "node_modules" / "rabbitmq-stream-js-client").is_dir():
        pytest.skip(
            "missing: rabbitmq-stream-js-client "
            "(cd conformance/clients/adapters/rabbitmq-stream-js && npm ci)"
        )
    (tmp_path / "client-gate").mkdir()
    shutil.copytree(TOP / "conformance" / "clients" / "adapters" / "_node", tmp_path / "_node")
    shutil.copy(CLIENT / "adapter.mjs", tmp_path / "client-gate")
    (tmp_path / "client-gate" / "node_modules").symlink_to((CLIENT / "node_modules").resolve())
    (tmp_path / "client-gate" / "known-failures.toml").write_text("version = 2\n")
    done = judge(name, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^rabbitmq-stream-js-client (\S+) against \1$", done.stdout, re.MULTILINE)
    assert uploaded(name) and all((tmp_path / path).exists() for path in uploaded(name))
    (suite,) = ElementTree.parse(tmp_path / "report" / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    baseline = tmp_path / "client-gate" / "baseline.json"
    earlier = json.loads(baseline.read_text())
    earlier["results"].append({**earlier["results"][0], "id": "RMQS-3.01"})
    baseline.write_text(json.dumps(earlier))
    done = run(commands(name)[-1], tmp_path)
    assert done.returncode == ExitCode.REGRESSION, done.stdout + done.stderr
    assert "vanished" in done.stdout and "RMQS-3.01/rabbitmq-stream" in done.stdout


# the same in languages that are compiled

ADAPTERS = TOP / "conformance" / "clients" / "adapters"
KITS = TOP / "conformance" / "clients" / "adapter" / "kits"
#: Of each language: its program, what the adapter is made of, and where the kit lies for it.
MADE_OF = {
    "go": ("go", ("go.mod", "go.sum", "*.go"), "../../adapter/kits/go"),
    "java": ("mvn", ("pom.xml", "lockfile.json", "src/*.java"), "../../adapter/kits/java"),
    "rust": ("cargo", ("Cargo.toml", "Cargo.lock", "src/*.rs"), "../../adapter/kits/rust"),
}
OFFLINE = {"GOPROXY": "off", "GOFLAGS": "-mod=mod -buildvcs=false", "CARGO_NET_OFFLINE": "true"}


def built_project(language: str, folder: Path) -> None:
    """The adapter of a stock client, copied out of the tree with its kit."""
    program, parts, kit = MADE_OF[language]
    source = ADAPTERS / f"rabbitmq-stream-{language}"
    missing = missing_cargo() if language == "rust" else "" if shutil.which(program) else program
    if missing:
        pytest.skip(f"missing: {missing}")
    if not (source / "build" / "built-from").exists():
        pytest.skip(f"missing: what {source.name} is made of (ci/test builds it)")
    place = folder / "client-gate"
    shutil.rmtree(place / "src", ignore_errors=True)
    shutil.copytree(KITS / language, place / "kit", dirs_exist_ok=True)
    for path in (path for part in parts for path in source.glob(part)):
        copied = place / path.relative_to(source)
        copied.parent.mkdir(exist_ok=True)
        text = path.read_text("utf-8").replace(kit, "./kit")
        copied.write_text(text.replace('name = "rabbitmq-stream-rust"', 'name = "adapter"'), "utf-8")
    (place / "known-failures.toml").write_text("version = 2\n")


@pytest.mark.full
@pytest.mark.parametrize(
    "language", [pytest.param(each, marks=pytest.mark.nightly) if each == "rust" else each for each in BUILT]
)
def test_the_gate_in_a_project_that_is_built(language: str, tmp_path: Path, monkeypatch: Any) -> None:
    for name, value in OFFLINE.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path
    if language == "rust":  # Cargo takes the crates that the adapter itself was built of
        monkeypatch.setenv("CARGO_BUILD_BUILD_DIR", str(ADAPTERS / "rabbitmq-stream-rust" / "build"))
        folder = ADAPTERS / "rabbitmq-stream-rust" / "build" / "downstream"
        folder.mkdir(exist_ok=True)
        shutil.rmtree(folder / "report", ignore_errors=True)
    built_project(language, folder)
    (folder / "client-gate" / "baseline.json").unlink(missing_ok=True)
    done = judge(f"github-gate-{language}.yml", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\S+ (\S+) against \1$", done.stdout, re.MULTILINE)
