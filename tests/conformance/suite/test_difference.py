"""What a criterion says of two values that differ."""

from __future__ import annotations

import pytest

from conformance.suite.difference import difference, shown
from conformance.suite.expect import Expect, Violated

FIFTY = list(range(1, 51))


@pytest.mark.parametrize(
    ("actual", "wanted", "sentence"),
    [
        ([n for n in FIFTY if n != 17], FIFTY, "expected 50, got 49; 17 is missing"),
        (FIFTY[:-2], FIFTY, "expected 50, got 48; 49, 50 are missing"),
        (FIFTY[:9], FIFTY, "expected 50, got 9; 10, 11, 12, 13, 14 and 36 more are missing"),
        ([*FIFTY, 3], FIFTY, "expected 50, got 51; 3 came more than once"),
        ([*FIFTY, 60], FIFTY, "expected 50, got 51; 60 came besides"),
        ([2, 1, 3, 4, 5], [1, 2, 3, 4, 5], "expected 5, got 5; in another order: 2 came in place 1, not 1"),
        ([[1], [2], [3], [4]], [[1], [2], [3], [4], [5]], "expected 5, got 4; '[5]' is missing"),
        (FIFTY[:5], tuple(FIFTY[:5]), "expected 1, 2, 3, 4, 5 as tuple, got it as list"),
        ([], [1, 2], "expected 1, 2, got nothing"),
        ([50], [58], "expected 58, got 50"),
        ("tea", "milk", "expected 'milk', got 'tea'"),
        (set(FIFTY) - {17}, set(FIFTY), "expected 50, got 49; 17 is missing"),
    ],
)
def test_a_sentence_says_what_differs(actual: object, wanted: object, sentence: str) -> None:
    assert difference(actual, wanted) == sentence


def test_lists_have_no_brackets_and_lines_no_padding() -> None:
    assert shown([50]) == "50"
    assert shown(["   0.01   c1 -> Publish        30 B"]) == "0.01 c1 -> Publish 30 B"
    assert shown([]) == "nothing"
    assert shown("x" * 999).endswith("(1001 characters)")


def test_a_criterion_uses_it() -> None:
    with pytest.raises(Violated, match="all are there: expected 50, got 49; 17 is missing"):
        Expect().equal([n for n in FIFTY if n != 17], FIFTY, "all are there", id="all-are-there")
    with pytest.raises(Violated, match=r"none is left: 50$"):
        Expect().that(False, "none is left", [50], id="none-is-left")
