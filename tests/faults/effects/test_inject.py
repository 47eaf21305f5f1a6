"""Frames that the broker never said: inject and reply."""

from __future__ import annotations

import pytest

from fakebrokers.errors import PlanError
from fakebrokers.faults import (
    fault,
    reply,
)
from fakebrokers.faults.effects import (
    Inject,
)
from tests.core.talk import Talk


def test_inject() -> None:
    talk = Talk(fault(Inject(kind="Value", fields={"key": "k", "body": "b"}, times=2), kind="Stored"))
    assert talk.send(b"put a") == [b"stored a\nvalue k b\nvalue k b\n"]
    talk = Talk(fault(Inject(hex="0a", place="before"), kind="Stored"))
    assert talk.send(b"put a") == [b"\nstored a\n"]


def test_inject_at_a_clients_frame() -> None:
    talk = Talk(fault(Inject(hex="2a"), kind="Put"))
    assert talk.send(b"put a") == [b"*stored a\n"]


def test_inject_checks_the_frame_when_it_is_added() -> None:
    with pytest.raises(PlanError, match=r"effect\.kind: .*; got 'Stord' \(did you mean 'Stored'"):
        Talk(fault(Inject(kind="Stord"), role="confirm"))
    with pytest.raises(PlanError, match=r"effect\.fields\.keys: expected a value for Stored, got nothing"):
        Talk(fault(Inject(kind="Stored"), role="confirm"))


def test_reply() -> None:
    talk = Talk(reply(7, role="publish", nth=1))
    assert talk.send(b"put a") == [b"refused a 7\n"]
    assert talk.broker.values == {}
    assert talk.send(b"put a") == [b"stored a\n"]
    talk = Talk(reply(7, role="publish", pass_request=True))
    assert talk.send(b"put a") == [b"refused a 7\nstored a\n"]
    assert Talk(reply(7, kind="Get")).send(b"get a") == [b"value a\n"]  # has no refusal: goes on
