"""Programs in Rust: whether they can be built here, and building one with the crates of the findings."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pages import DOCS

#: The oldest cargo that reads the lock files.
LEAST = (1, 78)
#: All crates take minutes on a busy machine.
BUILDING_S = 800
CRATES = DOCS / "findings" / "rust"


def missing_cargo() -> str:
    """What is missing for it; "" if nothing is."""
    try:
        told = subprocess.run(["cargo", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "cargo"
    found = re.match(r"cargo (\d+)\.(\d+)", told)
    if found is None or tuple(map(int, found.groups())) < LEAST:
        return f"cargo {LEAST[0]}.{LEAST[1]} or newer (there is {told.strip()})"
    return ""


def build(program: Path, folder: Path, *flags: str) -> Path:
    """A program in Rust, built; skips the test without cargo.

    Args:
        folder: Where it is built; one that has been built in before has the crates.
        flags: Of cargo.
    """
    if missing := missing_cargo():
        pytest.skip(f"missing: {missing}")
    shutil.copytree(CRATES, folder, dirs_exist_ok=True)
    (folder / "src").mkdir(exist_ok=True)
    shutil.copy(program, folder / "src" / "main.rs")
    command = ["cargo", "build", "--quiet", "--locked", "--target-dir", "target", *flags]
    subprocess.run(command, cwd=folder, check=True, timeout=BUILDING_S)
    return folder / "target" / "debug" / "findings"
