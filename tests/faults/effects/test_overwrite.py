"""A number in the bytes of a frame is another one."""

from __future__ import annotations

from typing import Any

import pytest

from fakebrokers.errors import PlanError
from fakebrokers.faults import overwrite
from tests.core.talk import Talk


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"at": 7, "width": 1, "value": ord("z")}, b"stored z\n"),
        ({"at": 7, "width": 1, "add": 1}, b"stored b\n"),
        ({"at": 7, "width": 1, "add": 255}, b"stored `\n"),
        ({"at": 6, "width": 2, "add": 0x0101}, b"stored!b\n"),
        ({"at": 6, "width": 4, "value": 0}, b"stored a\n"),  # the frame ends before
    ],
)
def test_overwrite(how: dict[str, Any], said: bytes) -> None:
    assert Talk(overwrite(**how, role="confirm")).send(b"put a") == [said]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"at": -1, "value": 0}, r"at: expected an offset from 0, got -1"),
        ({"at": 0}, r'expected either "value" or "add"'),
        ({"at": 0, "value": 1, "add": 1}, r'expected either "value" or "add"'),
        ({"at": 0, "width": 2, "value": 65536}, r"value: expected 0\.\.65535, which 2 bytes hold, got 65536"),
        ({"at": 0, "width": 3, "value": 0}, r"width"),
    ],
)
def test_what_makes_no_sense(how: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        overwrite(**how)
