"""What ``go tool covdata`` writes becomes functions, blocks and lines of packages."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from conformance.clients.adapters.registry import find
from conformance.coverage.document import SECTION
from conformance.coverage.go import GoMeter, blocks_of, files_of
from conformance.coverage.languages import meter_of
from conformance.suite import clients
from conformance.suite.conform import SuiteRequest, conform
from fakebrokers.errors import UsageError

PROFILE = """\
mode: atomic
example.org/toy/pkg/sign.go:5.29,6.16 1 4
example.org/toy/pkg/sign.go:6.16,8.3 1 0
example.org/toy/pkg/sign.go:9.2,9.10 1 4
example.org/toy/pkg/sign.go:12.20,14.2 2 0
example.org/toy/pkg/sign.go:16.15,16.15 0 0
example.org/toy/main.go:3.13,5.2 1 1
"""
FUNCTIONS = """\
example.org/toy/pkg/sign.go:5:\t\tsign\t\t66.7%
example.org/toy/pkg/sign.go:12:\t\tnever\t\t0.0%
total:\t\t(statements)\t\t50.0%
"""
PACKAGES = ["example.org/toy/pkg/..."]


def test_functions_blocks_and_lines_come_from_a_text_profile() -> None:
    [file] = files_of(blocks_of(PROFILE, PACKAGES), FUNCTIONS)
    sign, never = file.functions
    assert file.path == "example.org/toy/pkg/sign.go"
    assert (file.branches, file.executed, file.lines, file.executed_lines) == (4, 2, 8, 3)
    assert (sign.name, sign.line, sign.missing, sign.missing_lines) == ("sign", 5, ((6, 8),), (7, 8))
    assert (never.name, never.is_entered, never.missing) == ("never", False, ((12, 14),))


def test_only_packages_that_are_named_count() -> None:
    assert {block.path for block in blocks_of(PROFILE, ["example.org/toy/pk"])} == set()
    assert {block.path for block in blocks_of(PROFILE, ["example.org/toy/..."])} == {
        "example.org/toy/pkg/sign.go",
        "example.org/toy/main.go",
    }


def test_a_block_is_executed_if_any_profile_says_so() -> None:
    twice = PROFILE + PROFILE.replace("8.3 1 0", "8.3 1 1")
    [sign, _] = files_of(blocks_of(twice, PACKAGES), FUNCTIONS)[0].functions
    assert sign.missing == ()


def test_without_go_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="takes the program go"):
        meter_of(find("pzq-go"), tmp_path / "out")


def test_what_go_says_of_a_build_that_fails_is_shown(tmp_path: Path) -> None:
    program = tmp_path / "go"
    program.write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        with pytest.raises(UsageError, match="go build -cover fails: no such module"):
            GoMeter(find("pzq-go"), tmp_path / "out")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("go") is None, reason="missing: go")
@pytest.mark.skipif(not find("pzq-go").runnable, reason="missing: the client pzq-go")
def test_rows_of_a_real_client_are_told_apart(tmp_path: Path) -> None:
    meter = meter_of(find("pzq-go"), tmp_path)
    who = clients.bundled("pzq-go", None, measured=meter.client)
    order = SuiteRequest(
        client=who.name,
        protocol=who.protocol,
        make_adapter=who.make,
        ids=("PZQ-1",),
        which="full",
        meter=meter,
    )
    conform(order, Console(quiet=True))
    found = meter.document()
    [group] = found.of(SECTION)
    assert (group.name, group.branches > 30) == ("PZQ-1", True)
    assert all(each.path.startswith("github.com/go-zeromq/zmq4/") for each in found.files)
    assert 0 < found.executed_lines < found.lines
    assert msgspec.json.encode(found)
