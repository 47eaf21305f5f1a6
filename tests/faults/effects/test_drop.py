"""Frames that are lost."""

from __future__ import annotations

from fakebrokers.faults import (
    drop,
)
from fakebrokers.journal import Tap
from tests.core.talk import Talk


def test_drop_out() -> None:
    talk = Talk(drop(role="confirm", nth=2))
    assert talk.send(b"put a") == [b"stored a\n"]
    assert talk.send(b"put b", b"put c") == [b"stored c\n"]
    assert talk.seen(Tap.SAID)[-2:] == [("said", "Stored", ("b",)), ("out", "Stored", ("c",))]
    assert ("sent", "Stored", ("b",)) not in talk.seen(Tap.SENT)


def test_drop_in() -> None:
    talk = Talk(drop(role="publish", nth=1, direction="in"))
    assert talk.send(b"put a") == []
    assert talk.broker.values == {}
    assert talk.seen(Tap.RECEIVED)[-1] == ("received", "Put", ("a",))
    assert talk.send(b"put a") == [b"stored a\n"]
