"""``pytest --fakebrokers-mutate`` in projects of their own: what is copied needs its own process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import PATIENCE_S, eventually

TOP = Path(__file__).parents[2]

#: The toy is one of the protocols there; a client on virtual time, and a blocking one.
CONFTEST = f"""
import sys
sys.path.insert(0, {str(TOP)!r})

from fakebrokers.protocol import register

register("toy", "tests.toy")
"""

CLIENTS = """
import asyncio, os, socket, time
from pathlib import Path
import pytest
from fakebrokers.faults import drop
from tests.toy import Toy

def talk(broker, *lines):
    "Say lines to the toy, and wait for each answer, however long; return the last one."
    answer = ""
    with socket.create_connection(("127.0.0.1", broker.port)) as connection:
        with connection.makefile("r") as answers:
            for line in ["hello me", *lines]:
                connection.sendall(line.encode() + b"\\n")
                while (answer := answers.readline().strip()) == "beat":
                    pass
    return answer

async def attempt(broker, *lines):
    "The same, for ten seconds."
    reader, writer = await asyncio.open_connection(broker.host, broker.port)
    answer = b""
    try:
        async with asyncio.timeout(10):
            for line in ["hello me", *lines]:
                writer.write(line.encode() + b"\\n")
                while (answer := await reader.readline()) == b"beat\\n":
                    pass
    finally:
        writer.close()
    return answer.decode().strip()
"""


class Project:
    """Runs pytest in a folder.

    Attributes:
        folder: Where it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "conftest.py").write_text(CONFTEST)
        (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")

    def command(self, tests: str, *args: str) -> list[str]:
        (self.folder / "test_it.py").write_text(CLIENTS + tests)
        off = [word for name in ("allure_pytest", "xdist", "timeout") for word in ("-p", f"no:{name}")]
        return [sys.executable, "-m", "pytest", *off, "--fakebrokers-mutate", *args]

    def run(self, tests: str, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(tests, *args, "--fakebrokers-mutate-json=out.json", "--basetemp=tmp"),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S * 10,
        )

    @property
    def result(self) -> Any:
        return json.loads((self.folder / "out.json").read_text())

    @property
    def rows(self) -> dict[str, Any]:
        """What became of the behaviours that were met."""
        return {row["behaviour"]: row for row in self.result["behaviours"] if row["verdict"] != "not met"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


WAYS = """
def test_fixture(toy):
    assert talk(toy, "put a 1") == "stored a"

def test_factory(toy_factory):
    toy_factory()
    assert talk(toy_factory(), "put a 1") == "stored a"

class TestShared:
    def test_class(self, toy_class):
        toy_class.reset()
        talk(toy_class, "put a 1")

    def test_module(self, toy_module):
        toy_module.faults.clear()
        talk(toy_module, "put a 1")

    def test_session(self, toy_session):
        talk(toy_session, "put a 1")
        toy_session.faults.check()

@pytest.mark.parametrize("number", [1, 2])
def test_without_a_fixture(number, tmp_path, capsys):
    with Toy() as broker:
        assert talk(broker, "put a 1") == "stored a"
    assert list(tmp_path.iterdir()) == []
    print(number)
    assert capsys.readouterr().out == f"{number}\\n"

async def test_simulation(simulation):
    broker = simulation.toy()
    assert await attempt(broker, "put a 1") == "stored a"

def test_strict(toy):
    assert [talk(toy, "get a", "get b"), talk(toy, "get a")] == ["value b", "value a"]

def test_lenient(toy):
    talk(toy, "get a")
"""


def test_every_way_to_a_fake_and_the_first_test_that_notices(project: Project) -> None:
    only = "--fakebrokers-mutate-only=second-confirm,second-delivery"
    done = project.run(WAYS, only, "--fakebrokers-mutate-min=51")
    assert done.returncode == 1, done.stdout
    rows = project.rows
    assert rows.keys() == {"second-confirm", "second-delivery"}
    unnoticed, noticed = rows["second-confirm"], rows["second-delivery"]
    assert (unnoticed["verdict"], unnoticed["met_by"], unnoticed["tried"]) == ("unnoticed", 8, 8)
    assert (noticed["verdict"], noticed["noticed_by"]) == ("noticed", "test_it.py::test_strict")
    assert "assert ['value a', 'value a'] == ['value b', 'value a']" in noticed["why"]
    assert (project.result["score"], project.result["left_out"]) == (50.0, [])
    assert "10 passed" in done.stdout
    shown = [line for line in done.stdout.splitlines() if "[fault: second-confirm]" in line]
    assert len(shown) == 3 * len(unnoticed["places"]) == 9
    assert "score 50 %, below 51 %: 1 noticed, 1 unnoticed" in done.stdout


KNOWN = """
from hypothesis import given, settings, strategies as st

def test_fails_as_it_is(toy):
    assert talk(toy, "put a 1") == "no"

class TestShared:
    def test_puts(self, toy_class):
        talk(toy_class, "put a 1")

    def test_needs_what_the_first_has_put(self, toy_class):
        assert talk(toy_class, "get a") == "value a 1"

async def test_has_a_fault_of_its_own(simulation):
    broker = simulation.toy(faults=[drop(role="confirm", nth=1)])
    with pytest.raises(TimeoutError):
        await attempt(broker, "put a 1")

@settings(max_examples=3, deadline=None)
@given(st.integers(1, 3))
def test_of_hypothesis(toy_factory, number):
    assert talk(toy_factory(), "put a 1", "put b 1") == "stored b"

def test_dies(toy):
    if talk(toy, "get a", "get b") != "value b":
        os._exit(3)
"""


def test_what_is_left_out_and_how_else_a_behaviour_is_known(project: Project) -> None:
    done = project.run(KNOWN, "--fakebrokers-mutate-only=lost-confirm,second-confirm,second-delivery")
    assert done.returncode == 1, done.stdout  # that of the plain run
    left_out = project.result["left_out"]
    assert {row["test"].rpartition("::")[2]: row["why"].partition(":")[0] for row in left_out} == {
        "test_fails_as_it_is": "fails as it is",
        "test_needs_what_the_first_has_put": "fails with fixtures of its own",
    }
    rows = project.rows.items()
    known = {name: (row["verdict"], row["noticed_by"].rpartition("::")[2]) for name, row in rows}
    assert known == {
        "lost-confirm": ("own fault", "test_has_a_fault_of_its_own"),
        "second-confirm": ("noticed", "test_of_hypothesis"),
        "second-delivery": ("noticed", "test_dies"),
    }
    assert project.rows["second-delivery"]["why"] == "the process of the test ended: exit status 3"
    assert not (project.folder / ".hypothesis" / "examples").exists()
    failed = json.loads((project.folder / ".pytest_cache/v/cache/lastfailed").read_text())
    assert list(failed) == ["test_it.py::test_fails_as_it_is"]


HANGS = """
import subprocess

def test_waits_for_ever(toy):
    with subprocess.Popen(["sleep", "1000"]) as child:
        with Path("pids").open("a") as file:
            print(os.getppid(), os.getpid(), child.pid, file=file)
        assert talk(toy, "get a") == "value a"
        child.kill()
"""


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_test_that_waits_for_ever_is_ended_with_its_children(project: Project) -> None:
    done = project.run(HANGS, "--fakebrokers-mutate-only=lost-delivery", "--fakebrokers-mutate-wait=1")
    assert done.returncode == 0, done.stdout
    row = project.rows["lost-delivery"]
    assert (row["verdict"], row["noticed_by"]) == ("time-out", "test_it.py::test_waits_for_ever")
    assert "[fault: lost-delivery]" in row["places"][0]["lines"][0]
    *_, last = (project.folder / "pids").read_text().splitlines()
    assert not any(is_alive(int(pid)) for pid in last.split())


def test_ctrl_c_leaves_nothing(project: Project) -> None:
    limits = ["--fakebrokers-mutate-only=lost-delivery", "--fakebrokers-mutate-wait=1000"]
    pids = project.folder / "pids"
    with subprocess.Popen(project.command(HANGS, *limits), cwd=project.folder, stdout=-1, text=True) as run:
        # the plain run, the one with fixtures of its own, and the one that waits
        eventually(lambda: pids.exists() and len(pids.read_text().splitlines()) == 3, "a test that waits")
        last = [int(pid) for pid in pids.read_text().splitlines()[-1].split()]
        run.send_signal(signal.SIGINT)
        printed, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == pytest.ExitCode.INTERRUPTED, printed
    assert "1 passed" in printed
    eventually(lambda: not any(map(is_alive, last)), "the end of all processes")


def test_what_cannot_be(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test(): pass")
    for args, message in (
        (["-n2"], "*--fakebrokers-mutate runs tests again in copies of this process: leave out -n*"),
        (["--fakebrokers-mutate-json=no/where.json"], "*-json: there is no folder for no/where.json"),
        (["--fakebrokers-mutate-min=most"], "*expected a number, got 'most'"),
    ):
        result = pytester.runpytest("--fakebrokers-mutate", *args)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([message])
