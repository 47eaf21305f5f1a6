"""A starting point passes the self-test before anything was changed."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from conformance.adapter.check import check
from conformance.adapter.new import BUILDS, LANGUAGES, new
from conformance.adapter.process import ProcessAdapter
from conformance.adapter.profile import profiles
from conformance.adapters.registry import HERE as ADAPTERS
from conformance.results import Verdict
from conformance.suite.conform import Order, conform
from fakebrokers.errors import UsageError
from tests.cargo import missing_cargo

COMMANDS = {
    "python": [sys.executable, "adapter.py"],
    "node": ["node", "adapter.mjs"],
    "go": ["./adapter"],
    "java": ["java", "-cp", "build/classes:build/lib/*", "Main"],
    "rust": ["./target/debug/adapter"],
}
PROGRAMS = {"python": sys.executable, "node": "node", "go": "go", "java": "mvn", "rust": "cargo"}
OFFLINE = {
    "GOPROXY": "off",
    "GOFLAGS": "-mod=mod -buildvcs=false",
    "GOTOOLCHAIN": "local",
    "CARGO_NET_OFFLINE": "true",
    "CARGO_INCREMENTAL": "0",
    "CARGO_PROFILE_DEV_DEBUG": "false",
}
#: Cargo compiles every crate for a folder anew, which takes its time: all tests share this one.
RUST = ADAPTERS / "rabbitmq-stream-rust" / "build" / "starting-point"


#: The build of all crates takes minutes.
IN_RUST = (pytest.mark.timeout(400), pytest.mark.nightly)
MARKS = {"python": (), "rust": IN_RUST}
EACH = [pytest.param(name, marks=MARKS.get(name, pytest.mark.full)) for name in LANGUAGES]


def make_new(language: str, folder: Path, protocol: str) -> list[str]:
    """Write it, build it where that is needed; returns its command."""
    if shutil.which(PROGRAMS[language]) is None:
        pytest.skip(f"missing: {PROGRAMS[language]}")
    if language == "rust":
        if missing := missing_cargo():
            pytest.skip(f"missing: {missing}")
        folder.mkdir(parents=True, exist_ok=True)
        folder = RUST
        (folder / "Cargo.toml").unlink(missing_ok=True)
        for part in ("kit", "src"):
            shutil.rmtree(folder / part, ignore_errors=True)
    new(language, folder, protocol)
    if language in BUILDS:
        subprocess.run(shlex.split(BUILDS[language]), cwd=folder, env={**os.environ, **OFFLINE}, check=True)
    first, *more = COMMANDS[language]
    return [str(folder / first) if first.startswith("./") else first, *more]


def check_new(language: str, folder: Path, protocol: str) -> None:
    command = make_new(language, folder, protocol)
    report = asyncio.run(check(command, protocol, cwd=folder, hello_s=60))
    assert [(check.name, check.problem) for check in report.checks if not check.ok] == []
    assert report.hello is not None
    assert report.hello.protocols == [protocol]


@pytest.mark.parametrize("language", EACH)
def test_it_passes_as_it_is(language: str, tmp_path: Path) -> None:
    check_new(language, tmp_path / "deep" / "folder", "rabbitmq-stream")


@pytest.mark.full
@pytest.mark.parametrize("language", EACH)
def test_untouched_it_gets_verdicts(language: str, tmp_path: Path) -> None:
    """It publishes to nobody: that is for the scenarios to say, and no failure of the harness."""
    command = make_new(language, tmp_path, "rabbitmq-stream")
    order = Order(
        client="pretend",
        protocol="rabbitmq-stream",
        make_adapter=lambda: ProcessAdapter(command, "rabbitmq-stream", cwd=tmp_path),
        ids=("RMQS-1.01", "RMQS-3.01", "RMQS-4.01"),
        parallel=3,
    )
    results = conform(order, Console(quiet=True))
    verdicts = {row.verdict for row in results.results}
    assert len(results.results) == 3
    assert verdicts <= {Verdict.FAIL, Verdict.INCONCLUSIVE}, [str(row) for row in results.results]


@pytest.mark.full
@pytest.mark.skipif(shutil.which("gofmt") is None, reason="missing: go")
def test_what_is_written_in_go_is_formatted(tmp_path: Path) -> None:
    new("go", tmp_path, "rabbitmq-stream")
    ours = [tmp_path, ADAPTERS / "rabbitmq-stream-go"]
    badly = subprocess.run(["gofmt", "-l", *ours], capture_output=True, text=True, check=True)
    assert badly.stdout == ""


@pytest.mark.full
@pytest.mark.parametrize("protocol", [name for name in profiles() if name != "rabbitmq-stream"])
@pytest.mark.parametrize("language", ["python", "node", "go"])  # Maven and Cargo take their time
def test_it_passes_for_every_protocol(language: str, protocol: str, tmp_path: Path) -> None:
    check_new(language, tmp_path, protocol)


def test_it_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "adapter.py").write_text("mine")
    with pytest.raises(UsageError, match=r"already there: .*adapter\.py"):
        new("python", tmp_path, "pzq")
    assert [path.name for path in tmp_path.iterdir()] == ["adapter.py"]


def test_the_python_kit_needs_the_standard_library_only(tmp_path: Path) -> None:
    new("python", tmp_path, "pzq")
    ours = {"bodies", "failure", "base", "helpers", "stdio", "subscription"}
    for path in (tmp_path / "kit").glob("*.py"):
        for line in path.read_text("utf-8").splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"]):
                root = words[1].lstrip(".").partition(".")[0]
                assert root in sys.stdlib_module_names | ours | {"__future__"}, (path.name, line)
