"""Frames that come twice, and frames that change places."""

from __future__ import annotations

from fakebrokers.faults import (
    duplicate,
    reorder,
)
from tests.core.talk import Talk


def test_duplicate() -> None:
    talk = Talk(duplicate(2, role="confirm", nth=1))
    assert talk.send(b"put a", b"put b") == [b"stored a\nstored a\nstored a\nstored b\n"]
    talk = Talk(duplicate(kind="Put"))
    assert talk.send(b"put a") == [b"stored a\nstored a\n"]


def test_duplicate_later() -> None:
    talk = Talk(duplicate(after_s=1.0, role="confirm", nth=1))
    assert talk.send(b"put a", b"put b") == [b"stored a\nstored b\n"]
    assert talk.at(0.9) == []
    assert talk.at(1.0) == [b"stored a\n"]


def test_reorder() -> None:
    talk = Talk(reorder(3, role="confirm"))
    assert talk.send(b"put a", b"put b") == []
    assert talk.send(b"put c") == [b"stored c\nstored b\nstored a\n"]
    assert talk.send(b"put d") == []
    assert talk.at(0.5) == [b"stored d\n"]


def test_frames_that_waited_for_others_that_never_came_go_on_as_they_came() -> None:
    talk = Talk(reorder(4, role="confirm", within_s=0.5))
    assert talk.send(b"put a", b"put b", b"put c") == []
    assert talk.at(0.49) == []
    assert talk.at(0.5) == [b"stored a\nstored b\nstored c\n"]


def test_reorder_shuffles_by_seed() -> None:
    def order(seed: int) -> list[bytes]:
        talk = Talk(reorder(window=8, order="shuffle", role="confirm"), seed=seed)
        return talk.send(*(b"put %d" % n for n in range(8)))

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(5)}) > 1


def test_reorder_in() -> None:
    talk = Talk(reorder(kind="Put"))
    talk.send(b"put a 1", b"put a 2")
    assert talk.broker.values == {"a": "1"}
