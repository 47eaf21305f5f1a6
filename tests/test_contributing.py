"""What `docs/contributing.md` shows runs, as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(# (test_\w+\.py)\n.*?)```", re.DOTALL)
EXAMPLES = {name: text for text, name in BLOCK.findall((TOP / "docs" / "contributing.md").read_text("utf-8"))}


def test_there_are_examples() -> None:
    shown = {"test_stutter.py", "test_first_confirm.py", "test_no_empty_publish.py", "test_shout.py"}
    assert set(EXAMPLES) == shown


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_short_and_runs(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(EXAMPLES[name], "utf-8")
    assert len([line for line in EXAMPLES[name].splitlines() if line.strip()]) <= 40
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
