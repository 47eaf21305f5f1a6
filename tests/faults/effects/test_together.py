"""Several effects on one frame."""

from __future__ import annotations

from fakebrokers.core.session import HangUp
from fakebrokers.faults import (
    drop,
    duplicate,
    fault,
    rst,
    slice_,
)
from fakebrokers.faults.effects import (
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    Fin,
    Latency,
    Rst,
    Slice,
)
from tests.core.talk import Talk


def test_effects_work_one_after_another() -> None:
    talk = Talk(fault(Corrupt(at=0, xor=0x20), Slice(at=1, gap_s=0), Fin(), role="confirm"))
    assert talk.send(b"put a") == [b"S", b"tored a\n"]
    assert talk.wire.ended is HangUp.FIN
    talk = Talk(fault(Duplicate(), Latency(seconds=1.0), role="confirm"))
    talk.send(b"put a")
    assert talk.at(1.0) == [b"stored a\nstored a\n"]
    talk = Talk(fault(Delay(seconds=1.0), Duplicate(), role="confirm", nth=1))
    assert talk.send(b"put a", b"put b") == [b"stored b\n"]
    assert talk.at(1.0) == [b"stored a\nstored a\n"]
    talk = Talk(fault(Drop(), Rst(), role="confirm"))
    assert talk.send(b"put a") == []
    assert talk.wire.ended is HangUp.RST


def test_two_rules_on_one_frame() -> None:
    talk = Talk(duplicate(kind="Stored", name="two"), slice_(at=1, gap_s=0, kind="Stored", name="cut"))
    assert talk.send(b"put a") == [b"s", b"tored a\n", b"s", b"tored a\n"]
    assert talk.records("Stored")[0].fault == "two,cut"
    talk = Talk(drop(kind="Stored"), rst(kind="Stored"))
    assert talk.send(b"put a") == []
    assert talk.wire.ended is HangUp.RST
