"""How bytes are cut into segments: slice and coalesce."""

from __future__ import annotations

from fakebrokers.core.session import HangUp
from fakebrokers.faults import (
    coalesce,
    fault,
    slice_,
)
from fakebrokers.faults.effects import (
    Coalesce,
    Rst,
)
from tests.core.talk import Talk


def test_slice() -> None:
    talk = Talk(slice_(3, gap_s=0.1, kind="Stored"))
    assert talk.send(b"put a", b"get a") == [b"sto"]
    assert talk.at(0.1) == [b"red"]
    assert talk.at(0.35) == [b" a\n", b"value a\n"]
    assert [r.tap.label for r in talk.records("Stored")] == ["said", "sent"]


def test_slice_in_parts() -> None:
    talk = Talk(slice_(parts=3, gap_s=0.0, kind="Stored"))
    assert talk.send(b"put a") == [b"sto", b"red", b" a\n"]


def test_slice_without_gap_is_one_write_each() -> None:
    talk = Talk(slice_(size=1, gap_s=0, direction="out"))
    assert talk.send(b"put a") == [bytes([byte]) for byte in b"stored a\n"]


def test_slice_once_in_the_frame_or_in_the_stream() -> None:
    assert Talk(slice_(at=2, gap_s=0, kind="Stored")).send(b"put a") == [b"st", b"ored a\n"]
    assert Talk(slice_(at=-2, gap_s=0, kind="Stored")).send(b"put a") == [b"stored ", b"a\n"]
    # 8 bytes of welcome come before, 9 of the first confirm: byte 20 is the fourth of the second one
    talk = Talk(slice_(at=20, of="stream", byte=20, gap_s=0))
    assert talk.send(b"put a", b"put b") == [b"stored a\n", b"sto", b"red b\n"]


def test_one_cut_delays_nothing_behind_the_frame() -> None:
    talk = Talk(slice_(at=2, gap_s=0.1, kind="Stored", nth=1))
    assert talk.send(b"put a", b"put b") == [b"st"]
    assert b"".join(talk.at(0.1)) == b"ored a\nstored b\n"


def test_slice_walks_through_the_frames_of_a_kind() -> None:
    talk = Talk(slice_(walk=True, gap_s=0, direction="out"))
    assert talk.send(b"put a", b"put b", b"get a", b"put c") == [
        b"s",
        b"tored a\n",
        b"st",
        b"ored b\n",
        b"v",
        b"alue a\n",
        b"sto",
        b"red c\n",
    ]


def test_slice_at_random_by_seed() -> None:
    def pieces(seed: int) -> tuple[bytes, ...]:
        talk = Talk(slice_(up_to=4, gap="random", gap_s=0.01, kind="Value"), seed=seed)
        return (*talk.send(b"get k"), *talk.at(0.5))

    assert pieces(5) == pieces(5)
    assert b"".join(pieces(5)) == b"value k\n"
    assert all(1 <= len(piece) <= 4 for piece in pieces(5))
    assert len({pieces(seed) for seed in range(8)}) > 1


def test_gaps_only_at_the_start() -> None:
    talk = Talk(slice_(size=4, gap_s=0.1, gap_bytes=14, kind="Stored"))
    assert talk.send(b"put a", b"put b") == [b"stor"]  # bytes 8 to 11 of the connection
    assert talk.at(0.1) == [b"ed a", b"\n", b"stor", b"ed b", b"\n"]


def test_coalesce_frames() -> None:
    talk = Talk(coalesce(3, role="confirm", nth=1))
    assert talk.send(b"put a") == []
    assert talk.send(b"put b") == []
    assert talk.send(b"put c") == [b"stored a\nstored b\nstored c\n"]


def test_coalesce_gives_up_waiting() -> None:
    talk = Talk(coalesce(3, within_s=0.1, role="confirm", nth=1))
    talk.send(b"put a")
    assert talk.at(0.1) == [b"stored a\n"]


def test_coalesce_by_time() -> None:
    talk = Talk(coalesce(direction="out"))
    talk.at(0.5)
    assert talk.send(b"put a") == []
    talk.now = 0.51
    assert talk.send(b"put b") == []
    assert talk.at(0.52) == [b"stored a\nstored b\n"]


def test_frames_and_rst_in_one_write() -> None:
    talk = Talk(fault(Coalesce(frames=2, within_s=1.0), Rst(), role="confirm", nth=1))
    assert talk.send(b"put a") == []
    assert talk.wire.ended is None
    assert talk.send(b"put b") == [b"stored a\nstored b\n"]
    assert talk.wire.ended is HangUp.RST
