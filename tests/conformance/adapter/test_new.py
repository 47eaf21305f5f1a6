"""A starting point passes the self-test before anything was changed."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from conformance.adapter.check import check
from conformance.adapter.new import LANGUAGES, new
from conformance.adapter.profile import ROLE_OPS
from fakebrokers.errors import UsageError

COMMANDS = {"python": [sys.executable, "adapter.py"], "node": ["node", "adapter.mjs"]}


def check_new(language: str, folder: Path, protocol: str) -> None:
    if shutil.which(COMMANDS[language][0]) is None:
        pytest.skip("missing: node, 18 or newer")
    new(language, folder, protocol)
    report = asyncio.run(check(COMMANDS[language], protocol, cwd=folder))
    assert [(check.name, check.problem) for check in report.checks if not check.ok] == []
    assert report.hello is not None
    assert report.hello.protocols == [protocol]


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_passes_as_it_is(language: str, tmp_path: Path) -> None:
    check_new(language, tmp_path / "deep" / "folder", "rabbitmq-stream")


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [name for name in ROLE_OPS if name != "rabbitmq-stream"])
@pytest.mark.parametrize("language", LANGUAGES)
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
