"""Packed keys of many frames at once are those of each frame alone."""

from __future__ import annotations

import struct

import pytest

pytest.importorskip("numpy", reason="missing: numpy (pip install numpy)")

from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.journal.keys import row_keys
from fakebrokers.journal.packed import consecutive

TOP = (1 << 64) - 1


def pack(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}Q", *numbers)


def test_packs_that_grow_by_one() -> None:
    packs = [
        pack(7),
        None,
        pack(0, 1, 2),
        pack(1, 3),
        b"",
        pack(TOP - 1, TOP),
        pack(TOP, 0),
        pack(5, 6) + b"x",
    ]
    assert consecutive(packs) == [(7, 1, ()), None, (0, 3, ()), None, None, (TOP - 1, 2, ()), None, None]
    assert consecutive([]) == [] and consecutive([None, b""]) == [None, None]


NUMBERS = st.integers(0, 6) | st.integers(TOP - 3, TOP)
PACKS = st.lists(NUMBERS, max_size=5) | st.builds(
    lambda first, count: list(range(first, first + count)), st.integers(0, TOP - 9), st.integers(0, 9)
)


@given(st.lists(PACKS, max_size=6))
def test_each_is_what_the_reader_makes_of_it(packs: list[list[int]]) -> None:
    content = [pack(*numbers) for numbers in packs]
    alone = [row_keys(each, 0, "u64", batch=True) for each in content]
    for found, wanted in zip(consecutive(content), alone, strict=True):
        assert found == (wanted if wanted[0] is not None else None)
