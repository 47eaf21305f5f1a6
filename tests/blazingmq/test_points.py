"""Each point that was looked up in the broker's source has a test that plays it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_DOCUMENT = Path(__file__).parents[2].joinpath("docs", "protocols", "blazingmq.md")
_ROWS = re.findall(
    r"^\| (.+?) \| `(\w+\.cpp:\d+)` \| `(test_\w+)` \|$", _DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE
)


@pytest.fixture(scope="module")
def tests() -> set[str]:
    """The names of all tests of the fake."""
    texts = [path.read_text(encoding="utf-8") for path in _HERE.glob("test_*.py")]
    return {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row[0])
def test_a_point_has_its_test(row: tuple[str, str, str], tests: set[str]) -> None:
    assert row[2] in tests


def test_how_many_there_are() -> None:
    assert len(_ROWS) == 60
