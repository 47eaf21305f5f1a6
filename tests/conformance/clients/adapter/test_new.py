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

from conformance.clients.adapter.check import check
from conformance.clients.adapter.messages import Hello, Kind, body_bytes
from conformance.clients.adapter.new import BUILDS, LANGUAGES, new
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.profile import missing_ops, profile_of, profiles
from conformance.clients.adapters.registry import HERE as ADAPTERS
from conformance.results import Verdict
from conformance.suite.conform import SuiteRequest, conform
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


#: In Rust the build of all crates takes minutes.
MARKS = {"python": (), "rust": pytest.mark.nightly}
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


@pytest.mark.parametrize("protocol", profiles())
def test_it_has_what_the_protocol_has(protocol: str, tmp_path: Path) -> None:
    hello = asyncio.run(say_hello(make_new("python", tmp_path, protocol), protocol, tmp_path))
    assert hello.roles == list(profile_of(protocol).roles)
    assert missing_ops(hello, protocol) == []
    assert ("publish" in hello.ops) is (protocol != "moleculer")
    assert hello.settles == ("manual" if profile_of(protocol).settles else "none")


async def say_hello(command: list[str], protocol: str, folder: Path) -> Hello:
    adapter = ProcessAdapter(command, protocol, cwd=folder)
    try:
        return await adapter.start()
    finally:
        await adapter.kill()


def test_what_is_left_to_write_says_what_it_takes_and_gives(tmp_path: Path) -> None:
    new("python", tmp_path, "moleculer")
    written = (tmp_path / "adapter.py").read_text()
    assert 'raise Failure("unsupported", "mol.call is not written yet")' in written
    reported = " ".join(line.strip().removeprefix("# ") for line in written.splitlines())
    assert "Takes session, action, params?, meta?, timeout_ms?, node?," in reported
    assert "gives data, meta?, from?." in reported


@pytest.mark.parametrize("language", EACH)
def test_parts_and_what_settles_them_go_through_each_kit(language: str, tmp_path: Path) -> None:
    command = make_new(language, tmp_path, "pzq")
    folder = RUST if language == "rust" else tmp_path

    async def work() -> None:
        adapter = ProcessAdapter(command, "pzq", cwd=folder)
        await adapter.start()
        try:
            where = {
                "receive": "tcp://127.0.0.1:1",
                "send": "tcp://127.0.0.1:2",
                "monitor": "tcp://127.0.0.1:3",
            }
            assert (await adapter.call("connect", {"session": "s", "endpoints": where})).ok
            plan = {"mode": "event"}
            wanted = {"session": "s", "sub": "c", "target": "", "on_message": plan}
            assert (await adapter.call("subscribe", wanted)).ok
            body = [{"text": "one"}, {"text": "two"}]
            assert (await adapter.call("publish", {"session": "s", "target": "", "body": body})).ok
            (message,) = await adapter.wait_messages("c", 1, 5.0)
            assert [body_bytes(part) for part in message.body] == [b"one", b"two"]
            settled = await adapter.call("settle", {"sub": "c", "ref": message.ref, "how": "ack"})
            assert settled.ok, str(settled)
            unknown = await adapter.call("settle", {"sub": "c", "ref": "no such", "how": "ack"})
            assert unknown.kind is Kind.INVALID
            assert (await adapter.call("subscribe", wanted)).ok  # again by that name: to each its own refs
            assert (await adapter.call("publish", {"session": "s", "target": "", "body": body})).ok
            refs = [found.ref for found in await adapter.wait_messages("c", 3, 5.0)]
            assert len(set(refs)) == len(refs) == 3
            assert adapter.violations == []
        finally:
            await adapter.kill()

    asyncio.run(work())


@pytest.mark.full
@pytest.mark.parametrize("language", EACH)
def test_untouched_it_gets_verdicts(language: str, tmp_path: Path) -> None:
    """It publishes to nobody: that is for the scenarios to say, and no failure of the harness."""
    command = make_new(language, tmp_path, "rabbitmq-stream")
    order = SuiteRequest(
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
    ours = {"belongings", "bodies", "failure", "base", "helpers", "stdio", "subscription"}
    for path in (tmp_path / "kit").glob("*.py"):
        for line in path.read_text("utf-8").splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"]):
                root = words[1].lstrip(".").partition(".")[0]
                assert root in sys.stdlib_module_names | ours | {"__future__"}, (path.name, line)
