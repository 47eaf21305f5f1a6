"""Each point that was looked up in the broker's source has a test that plays it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.blazingmq.golden import scenarios
from tests.blazingmq.recorded import sessions

_HERE = Path(__file__).parent
_DOCUMENT = Path(__file__).parents[2].joinpath("docs", "protocols", "blazingmq.md")
_TEXT = _DOCUMENT.read_text(encoding="utf-8")
_ROWS = re.findall(r"^\| (.+?) \| `(\w+\.cpp:\d+)` \| `(test_\w+)` \|$", _TEXT, re.MULTILINE)
#: What rules of the notes name as their proof, after their legend.
_PROOFS = sorted(set(re.findall(r"\[([BM]): ([^\]]+)\]", _TEXT.partition("Recorded frames: section 13")[2])))


@pytest.fixture(scope="module")
def tests() -> set[str]:
    """The names of all tests of the fake."""
    texts = [path.read_text(encoding="utf-8") for path in _HERE.glob("test_*.py")]
    return {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row[0])
def test_a_point_has_its_test(row: tuple[str, str, str], tests: set[str]) -> None:
    assert row[2] in tests


@pytest.mark.parametrize(("kind", "name"), _PROOFS, ids=": ".join)
def test_what_a_rule_names_as_its_proof_is_there(kind: str, name: str, tests: set[str]) -> None:
    recordings = [*sessions(), "compare"] if kind == "B" else scenarios()
    assert name in recordings or name in tests


def test_no_rule_rests_on_reading_without_a_reason() -> None:
    """Marks are of three kinds, and what was not measured says why."""
    marks = set(re.findall(r"\[([A-Z])(?:: ([^\]]*))?\]", _TEXT))
    assert {kind for kind, _ in marks} == {"B", "M", "N"}
    assert ("N", "") not in marks
    assert len(_PROOFS) > 40


def test_how_many_there_are() -> None:
    assert len(_ROWS) == 60
