"""What a fixture costs a test, beside pytest-httpserver, which keeps one server for all tests.

Each run is a process of its own with a thousand tests that do nothing. What a test takes is CPU time of all
threads, above a test with a fixture that does nothing; runs alternate, and the least of each counts: whoever
else uses the processor only adds to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

ROUNDS = 3
PAIRS = 25
TESTS = 1000
WARM = 100
#: Milliseconds of CPU that a test with a fixture may take above an empty one.
LIMITS = {"rabbitmq_stream": 1.0, "narconi": 1.0, "blazingmq": 1.0, "moleculer": 1.0, "pzq": 3.0}
#: Bytes by which a thousand tests with any fixture may grow the process.
GROWTH = 5_000_000
#: Milliseconds of CPU that the plugin costs a project that does not use it.
UNUSED_MS = 15.0

EMPTY, BESIDE = "nothing", "httpserver"
LIGHT = ("hypothesispytest", "allure_pytest", "cacheprovider", "xdist", "timeout")

CONFTEST = f"""
import gc, os, time
import pytest

@pytest.fixture
def nothing():
    yield

seen = []

def pytest_runtest_logfinish():
    seen.append(None)
    if len(seen) in ({WARM}, {WARM + TESTS}):
        used = time.process_time()
        gc.collect()
        pages = int(open("/proc/self/statm").read().split()[1])
        print("MEASURED", used, pages * os.sysconf("SC_PAGE_SIZE"))
"""


def run(folder: Path, *arguments: str) -> tuple[list[str], float]:
    """Run pytest there; returns what it prints, and the seconds of CPU that it took."""
    off = [word for name in LIGHT for word in ("-p", f"no:{name}")]
    command = [sys.executable, "-m", "pytest", "-q", "-s", *off, *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, lines
    return lines, usage.ru_utime + usage.ru_stime


def cost(folder: Path, fixture: str) -> tuple[float, int]:
    """Milliseconds of CPU per test, and bytes by which the process grew."""
    many = f"@pytest.mark.parametrize('n', range({WARM + TESTS}))"
    (folder / "test_it.py").write_text(f"import pytest\n\n{many}\ndef test_it({fixture}, n): ...\n")
    lines, _ = run(folder)
    words = [line.partition("MEASURED ")[2].split() for line in lines if "MEASURED" in line]
    (began, small), (ended, large) = [(float(used), int(memory)) for used, memory in words]
    return (ended - began) / TESTS * 1000, large - small


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    return tmp_path


def table(rows: Sequence[Sequence[object]]) -> str:
    return "\n" + "\n".join("{:<18}{:>12}{:>12}".format(*map(str, row)) for row in rows)


def test_what_a_fixture_costs_a_test(project: Path) -> None:
    pytest.importorskip(
        "pytest_httpserver", reason="missing: pytest-httpserver (pip install pytest-httpserver)"
    )
    names = (EMPTY, BESIDE, *LIMITS)
    rounds = [{name: cost(project, name) for name in names} for _ in range(ROUNDS)]
    spent = {name: min(each[name][0] for each in rounds) for name in names}
    above = {name: spent[name] - spent[EMPTY] for name in names}
    growth = {name: min(each[name][1] for each in rounds) for name in names}
    rows = [(name, f"{above[name]:.2f} ms", f"{growth[name] / 1e6:.1f} MB") for name in names]
    print(table([("", "CPU", "growth"), *rows]))
    assert {name: above[name] for name, limit in LIMITS.items() if above[name] > limit} == {}
    assert {name: growth[name] for name in LIMITS if growth[name] > GROWTH} == {}


def test_what_the_plugin_costs_a_project_that_does_not_use_it(project: Path) -> None:
    (project / "conftest.py").unlink()
    (project / "test_it.py").write_text("def test_it(): ...\n")
    run(project)  # compiles
    pairs = [(run(project)[1] * 1000, run(project, "-p", "no:fakebrokers")[1] * 1000) for _ in range(PAIRS)]
    one, other = (min(each) for each in zip(*pairs, strict=True))
    print(table([("", "with", "without"), ("CPU", f"{one:.1f} ms", f"{other:.1f} ms")]))
    assert one - other <= UNUSED_MS
