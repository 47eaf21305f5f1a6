"""Ends of connections and of the whole fake."""

from __future__ import annotations

import pytest

from fakebrokers.core.session import HangUp
from fakebrokers.faults import (
    Fault,
    black_hole,
    crash,
    delay,
    fault,
    fin,
    half_open,
    refuse,
    rst,
    shift_clock,
)
from fakebrokers.faults.effects import (
    Rst,
    Truncate,
)
from fakebrokers.journal import Tap
from tests.core.talk import Talk
from tests.toy import Value

# ends


@pytest.mark.parametrize("make, how", [(fin, HangUp.FIN), (rst, HangUp.RST)])
def test_end_behind_and_instead_of_a_frame(make: type[Fault], how: HangUp) -> None:
    talk = Talk(make(role="confirm", nth=2))
    assert talk.send(b"put a", b"put b", b"put c") == [b"stored a\nstored b\n"]
    assert talk.wire.ended is how
    assert list(talk.broker.values) == ["a", "b"]
    talk = Talk(make(role="confirm", nth=2, pass_frame=False))
    assert talk.send(b"put a", b"put b") == [b"stored a\n"]


def test_end_at_a_clients_frame() -> None:
    talk = Talk(rst(kind="Put", nth=2))
    assert talk.send(b"put a", b"put b", b"put c") == [b"stored a\n"]
    assert list(talk.broker.values) == ["a", "b"]  # heard, but not answered
    talk = Talk(rst(kind="Put", nth=2, pass_frame=False))
    talk.send(b"put a", b"put b", b"put c")
    assert list(talk.broker.values) == ["a"]


def test_end_later() -> None:
    talk = Talk(fin(after_s=0.5, role="confirm", nth=1))
    assert talk.send(b"put a") == [b"stored a\n"]
    talk.now = 0.3
    assert talk.send(b"put b") == [b"stored b\n"]
    talk.at(0.5)
    assert talk.wire.ended is HangUp.FIN


def test_half_a_frame_then_rst() -> None:
    talk = Talk(fault(Truncate(share=0.5), Rst(), role="confirm", nth=1))
    assert talk.send(b"put a") == [b"stor"]
    assert talk.wire.ended is HangUp.RST


def test_rst_at_byte_k_of_the_stream() -> None:
    for k in range(8, 26):
        talk = Talk(fault(Truncate(keep=k, of="stream"), Rst(), direction="out", byte=k))
        got = b"".join(talk.send(b"put a", b"put b", b"put c"))
        assert got == b"stored a\nstored b\nstored c\n"[: k - 8]
        assert talk.wire.ended is HangUp.RST


def test_half_open_neither_reads_nor_writes() -> None:
    talk = Talk(half_open(role="confirm", nth=1))
    assert talk.send(b"put a", b"put b") == [b"stored a\n"]
    assert (talk.wire.ended, talk.wire.reading) == (None, False)
    assert talk.send(b"put c") == []
    talk.link.say(Value("a", ""))
    talk.engine.flush(0.0)
    assert talk.wire.writes == []
    assert talk.journal.records()[-1].tap is Tap.SAID
    assert talk.at(20.0) == []


def test_half_open_loses_what_is_late_both_ways() -> None:
    late = delay(1.0, role="confirm", nth=1), delay(1.0, kind="Put", nth=2)
    talk = Talk(*late, half_open(kind="Get"))
    assert talk.send(b"put a", b"put b", b"get a") == []
    assert talk.at(5.0) == []
    assert list(talk.broker.values) == ["a"]


# the whole fake


def test_refuse_and_black_hole() -> None:
    talk = Talk(refuse(2.0, kind="Put", name="r"), black_hole(kind="Get", name="b"))
    assert talk.send(b"put a", b"get a") == [b"stored a\nvalue a\n"]
    assert talk.listening.done == [("refuse", 2.0, "r"), ("black_hole", None, "b")]


@pytest.mark.parametrize("keep", [True, False])
def test_crash(keep: bool) -> None:
    talk = Talk(crash(keep_state=keep, role="confirm", nth=1, scope="run", restart_s=1.0, name="c"))
    other = talk.wire
    talk.connect()
    assert talk.send(b"put a x", b"put b") == []
    assert (talk.wire.ended, other.ended) == (HangUp.RST, HangUp.RST)
    assert talk.listening.done == [("down", 1.0, "c")]
    assert (talk.broker.values, talk.broker.restarts) == (({"a": "x"}, 1) if keep else ({}, 0))
    assert talk.engine.connections == {}


def test_crash_behind_the_frame() -> None:
    talk = Talk(crash(pass_frame=True, how="fin", role="confirm", nth=1))
    assert talk.send(b"put a") == [b"stored a\n"]
    assert talk.wire.ended is HangUp.FIN


def test_shift_clock() -> None:
    talk = Talk(shift_clock(-3600.0, kind="Put", nth=1))
    before = talk.engine.clock.wall(5.0)
    assert talk.send(b"put a") == [b"stored a\n"]
    assert talk.engine.clock.wall(5.0) == before - 3600
