"""Messages in other frames: split and join."""

from __future__ import annotations

import pytest

from fakebrokers.errors import PlanError
from fakebrokers.faults import join, split
from tests.core.talk import Talk


def test_split() -> None:
    assert Talk(split(role="confirm")).send(b"put a,b") == [b"stored a\nstored b\n"]
    assert Talk(split(reverse=True, role="confirm")).send(b"put a,b") == [b"stored b\nstored a\n"]


def test_a_frame_without_messages_stays_whole() -> None:
    assert Talk(split(kind="Value")).send(b"put a 1", b"get a") == [b"stored a\nvalue a 1\n"]


def test_join() -> None:
    talk = Talk(join(within_s=0.25, role="confirm"))
    assert talk.send(b"put a", b"put b,c") == []
    assert talk.at(0.24) == []
    assert talk.at(0.25) == [b"stored a,b,c\n"]


def test_a_frame_of_another_kind_is_not_joined_and_comes_first() -> None:
    talk = Talk(join(within_s=0.25, direction="out"))
    assert talk.send(b"put a 1", b"get a", b"put b") == [b"value a 1\n"]
    assert talk.at(0.25) == [b"stored a,b\n"]


def test_joining_needs_time() -> None:
    with pytest.raises(PlanError, match=r"within_s: expected seconds above 0, got 0"):
        join(within_s=0)
