"""The helpers for other languages: their own tests, with stock clients, against this fakebrokers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HELPERS = Path(__file__).parents[3] / "conformance" / "helpers"

pytestmark = pytest.mark.full


def run(folder: str, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a helper's folder; the fakebrokers that it starts is this one."""
    found = {**os.environ, "FAKEBROKERS": f"{sys.executable} -m fakebrokers", **environment}
    return subprocess.run(
        command, cwd=HELPERS / folder, env=found, capture_output=True, text=True, check=False, timeout=250
    )


def test_go() -> None:
    if shutil.which("go") is None:
        pytest.skip("missing: go (apt-get install golang)")
    if run("go", "go", "vet", "./...", GOPROXY="off", GOFLAGS="-mod=mod").returncode:
        pytest.skip("missing: Go modules (cd conformance/helpers/go && go mod download)")
    done = run("go", "go", "test", "-count=1", "-v", "./...", GOPROXY="off")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--- PASS: TestTheThirdConfirmIsLost (" in done.stdout
    assert "--- PASS: TestTheThirdConfirmIsLostInTheProxy (" in done.stdout
    assert "SKIP" not in done.stdout


def test_node() -> None:
    if shutil.which("node") is None:
        pytest.skip("missing: node (apt-get install nodejs)")
    if not (HELPERS / "node" / "node_modules" / "rabbitmq-stream-js-client").is_dir():
        pytest.skip("missing: rabbitmq-stream-js-client (cd conformance/helpers/node && npm ci)")
    done = run("node", "node", "--test", "--test-reporter=tap")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok 1 - the third confirm is lost" in done.stdout
    assert "ok 2 - the third confirm is lost in the proxy" in done.stdout
    assert "# skipped 0" in done.stdout


@pytest.mark.parametrize("file", ["go/fakebrokers.go", "node/fakebrokers.mjs"])
def test_the_table_of_the_readme_names_what_there_is(file: str) -> None:
    """Each word in the column of a language stands in its file."""
    column = 1 if file.startswith("go") else 2
    source = (HELPERS / file).read_text(encoding="utf-8")
    readme = (HELPERS / "README.md").read_text(encoding="utf-8")
    rows = [row.split("|") for row in readme.splitlines() if row.startswith("| `") and row.count("|") == 4]
    assert len(rows) == 10
    for row in rows:
        for text in row[column].split("`")[1::2]:
            name = text.partition("(")[0]
            for word in name.split():
                assert word in source, f"{file} has no {word}"
