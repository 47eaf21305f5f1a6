"""What ``llvm-cov export`` writes becomes functions, blocks and lines of crates."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from conformance.clients.adapters.registry import find
from conformance.coverage import rust
from conformance.coverage.document import SECTION
from conformance.coverage.languages import meter_of
from conformance.coverage.rust import _name, blocks_of, files_of, tools
from conformance.suite import clients
from conformance.suite.conform import SuiteRequest, conform
from fakebrokers.errors import UsageError

SOURCE = """\
pub fn sign(number: i32) -> i32 {
    // the usual
    if number < 0 {
        return -1;
    }
    let one = || 1;
    one()
}

fn never() -> i32 {
    2
}
"""
CODE, GAP = 0, 3


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "registry" / "src" / "index" / "toy-1.0.0" / "src" / "lib.rs"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    return path


def region(text: str, count: int, kind: int = CODE) -> list[int]:
    """Where a text of the source lies, as LLVM says it."""
    start = SOURCE.index(text)
    end = start + len(text)

    def place(at: int) -> list[int]:
        return [SOURCE.count("\n", 0, at) + 1, at - (SOURCE.rfind("\n", 0, at) + 1) + 1]

    return [*place(start), *place(end), count, 0, 0, kind]


SIGN = SOURCE[: SOURCE.index("\n\nfn never")]
NEGATIVE = SIGN[SIGN.index("{\n        return") : SIGN.index("\n    let one")]
NEVER = SOURCE[SOURCE.index("fn never") :].rstrip()


def export(path: Path, negative: int, called: int = 1) -> bytes:
    """Two instances of `sign`, one of which was never called."""
    functions = [
        (path, [region(SIGN, called), region(NEGATIVE, negative), region("\n    let", called, GAP)]),
        (path, [region(SIGN, 0), region(NEGATIVE, 0)]),
        (path, [region("|| 1", called)]),
        (path, [region(NEVER, 0)]),
        (path.parents[2] / "toys-1.0.0" / "lib.rs", [[1, 1, 1, 9, 1, 0, 0, CODE]]),
    ]
    data = [
        {"name": "_R", "count": 1, "branches": [], "filenames": [str(place)], "regions": regions}
        for place, regions in functions
    ]
    document = {"data": [{"files": [], "functions": data, "totals": {}}], "type": "llvm.coverage.json.export"}
    return json.dumps(document).encode()


CRATES = ["/toy-1.0.0/"]


def test_functions_blocks_and_lines_come_from_an_export(source: Path) -> None:
    [file] = files_of(blocks_of(export(source, 0), CRATES))
    assert file.path == "toy-1.0.0/src/lib.rs"
    sign, closure, never = file.functions
    assert (sign.name, sign.line, sign.branches, sign.executed) == ("sign", 1, 2, 1)
    assert (sign.missing, sign.missing_lines) == (((3, 5),), (4,))
    assert (closure.name, closure.line, closure.missing) == ("(closure)", 6, ())
    assert (never.name, never.is_entered, never.missing_lines) == ("never", False, (10, 11))
    assert (file.lines, file.executed_lines) == (7, 4)


def test_a_block_is_executed_if_any_instance_was(source: Path) -> None:
    sign = files_of(blocks_of(export(source, 1), CRATES))[0].functions[0]
    assert sign.missing == ()


OWNED = """\
impl<T: Into<Other>> From<Vec<T>> for Toy<T>
where
    T: Other,
{
    fn from(value: Vec<T>) -> Self {
    }
}
mod inner {
    pub(crate) fn free() {}
    pub trait Sound {
        fn loud(&self) {}
    }
    impl Sound for &Cow {
        async fn mute() {
            call(|| 1)
"""


def test_a_method_has_the_name_of_its_type() -> None:
    texts = OWNED.splitlines()
    names = [_name(texts, number) for number in (5, 9, 11, 14, 15)]
    assert names == ["Toy::from", "free", "Sound::loud", "Cow::mute", "(closure)"]


def test_an_async_function_is_one(source: Path) -> None:
    head, body = "fn never() -> i32 ", "{\n    2\n}"
    functions = [
        {"filenames": [str(source)], "regions": [region(head, 1)]},
        {"filenames": [str(source)], "regions": [region(body, 0), region("2\n", 0)]},
    ]
    data = json.dumps({"data": [{"functions": functions}]}).encode()
    [file] = files_of(blocks_of(data, CRATES))
    [never] = file.functions
    assert (never.name, never.line, never.branches, never.executed) == ("never", 10, 3, 1)


def test_nothing_that_was_whole_has_no_blocks() -> None:
    assert blocks_of(b"", CRATES) == []


def fake(folder: Path, name: str, says: str) -> None:
    """A program that says something."""
    path = folder / name
    path.write_text(f"#!/bin/sh\nprintf '{says}'\n")
    path.chmod(0o755)


VERSION = "rustc 1.95.0\\nhost: x86_64-unknown-linux-gnu\\nLLVM version: 22.1.2\\n"


def test_programs_of_another_llvm_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "rustc", VERSION)
    for name in ("llvm-profdata", "llvm-cov"):
        fake(tmp_path, name, "Debian LLVM version 14.0.6\\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(shutil, "which", only_in(tmp_path))
    with pytest.raises(
        UsageError, match="of LLVM 22, as the compiler has it: rustup component add llvm-tools"
    ):
        tools("toy")


def only_in(folder: Path) -> object:
    """``shutil.which`` on a machine with no other programs."""
    which = shutil.which
    return lambda name, path=None: which(name, path=path or str(folder))


@pytest.mark.parametrize("suffix", ["", "-22"])
def test_programs_of_the_same_llvm_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    fake(tmp_path, "rustc", VERSION)
    for name in ("llvm-profdata", "llvm-cov"):
        fake(tmp_path, f"{name}{suffix}", "LLVM version 22.1.8\\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(shutil, "which", only_in(tmp_path))
    assert tools("toy") == [str(tmp_path / f"{name}{suffix}") for name in ("llvm-profdata", "llvm-cov")]


def test_without_a_compiler_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="takes the program rustc: rustc is not on the PATH"):
        meter_of(find("rabbitmq-stream-rust"), tmp_path / "out")


@pytest.mark.parametrize(
    ("crate", "is_instrumented"), [("toy_client", True), ("toy_client_other", False), ("toy", False)]
)
def test_only_what_counts_is_instrumented(tmp_path: Path, crate: str, is_instrumented: bool) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(rust._WRAPPER.format(patterns='*" --crate-name toy_client "*'))
    done = rust._run(["sh", str(wrapper), "echo", "--crate-name", crate, "a b.rs"])
    assert done.stdout.decode().strip().endswith("-C instrument-coverage") == is_instrumented


@pytest.mark.nightly
@pytest.mark.timeout(900)  # the build of all crates takes minutes
@pytest.mark.skipif(shutil.which("cargo") is None, reason="missing: cargo")
@pytest.mark.skipif(
    not find("rabbitmq-stream-rust").runnable, reason="missing: the client rabbitmq-stream-rust"
)
def test_rows_of_a_real_client_are_told_apart(tmp_path: Path) -> None:
    try:
        tools("rabbitmq-stream-rust")
    except UsageError as error:
        pytest.skip(f"missing: {error}")
    meter = meter_of(find("rabbitmq-stream-rust"), tmp_path)
    who = clients.bundled("rabbitmq-stream-rust", None, measured=meter.client)
    order = SuiteRequest(
        client=who.name,
        protocol=who.protocol,
        make_adapter=who.make,
        ids=("RMQS-1.01", "RMQS-1.02"),
        which="full",
        meter=meter,
    )
    conform(order, Console(quiet=True))
    found = meter.document()
    [group] = found.of(SECTION)
    assert (group.name, group.branches > 30) == ("RMQS-1", True)
    assert {each.path.partition("/")[0].rpartition("-")[0] for each in found.files} == {
        "rabbitmq-stream-client",
        "rabbitmq-stream-protocol",
    }
    assert 0 < found.executed_lines < found.lines
    assert msgspec.json.encode(found)
