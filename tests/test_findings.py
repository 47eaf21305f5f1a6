"""Each program of `docs/findings` shows what the page says, where its client is installed in that version."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.site.findings import FOLDER, SEVERITIES, Finding, causes, findings, page
from conformance.adapters.registry import find
from conformance.suite.catalogue import requirements
from tests.pages import TOP, npm_package

FINDINGS = findings()
#: The libraries of the programs in JavaScript.
PACKAGES = {"rabbitmq-stream-js": "rabbitmq-stream-js-client", "moleculer-0.15": "moleculer"}
HELPER = TOP / "conformance" / "helpers" / "node" / "fakebrokers.mjs"


def set_up(finding: Finding, folder: Path) -> list[str]:
    """Put the program into a folder with what it imports; the command that runs it."""
    client = find(finding.client)
    if not client.runnable:
        pytest.skip(f"missing: {'; '.join(client.missing)}")
    if finding.library != "aiohttp" and client.version not in finding.versions.split(", "):
        pytest.skip(f"seen in {finding.versions}, and {client.version} is installed")
    shutil.copy(FOLDER / finding.program, folder)
    if finding.program.endswith(".py"):
        return [sys.executable, finding.program]
    name = PACKAGES[finding.client]
    package = npm_package(name)
    assert package is not None
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / name).symlink_to(package.resolve())
    shutil.copy(HELPER, folder)
    return ["node", finding.program]


@pytest.mark.waits
@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.program)
def test_a_program_shows_what_the_page_says(finding: Finding, tmp_path: Path) -> None:
    command = set_up(finding, tmp_path)
    env = os.environ | {"PYTHONPATH": str(TOP), "FAKEBROKERS": f"{sys.executable} -m fakebrokers"}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=100
    )
    printed = done.stdout + done.stderr
    assert done.returncode == finding.exit, printed
    for line in finding.prints:
        assert line in printed, printed
    assert "the process lives" not in printed


def test_the_list_is_whole() -> None:
    programs = {path.name for path in FOLDER.iterdir() if path.is_file()} - {"findings.toml", "README.md"}
    assert sorted(finding.program for finding in FINDINGS) == sorted(programs)
    assert {finding.severity for finding in FINDINGS} <= set(SEVERITIES)
    assert {id for finding in FINDINGS for id in finding.scenarios} <= requirements().keys()


def test_the_page_in_the_repository_is_that_of_the_list() -> None:
    written = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m ci.site.findings"


def test_each_cause_stands_once_with_its_scenarios() -> None:
    rows = [
        {"id": "A-1.01", "cause": "it forgets (lib 1.2.3)"},
        {"id": "A-1.02", "cause": "it forgets (lib 1.2.3)"},
        {"id": "A-1.02", "cause": "it forgets (lib 1.2.3)"},
        {"id": "A-1.03", "cause": "it crashes (lib 1.2.3, a.py)"},
    ]
    assert causes(iter(rows)) == {
        "it forgets": ["A-1.01", "A-1.02"],
        "it crashes (lib 1.2.3, a.py)": ["A-1.03"],
    }
