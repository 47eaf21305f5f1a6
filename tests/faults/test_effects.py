"""Each effect by itself, both ways where it is allowed, and several in one step."""

from __future__ import annotations

import pytest

from fakebrokers.errors import PlanError
from fakebrokers.faults import (
    Fault,
    black_hole,
    coalesce,
    corrupt,
    crash,
    delay,
    drop,
    duplicate,
    extend,
    fault,
    fin,
    half_open,
    hold,
    latency,
    refuse,
    reorder,
    reply,
    rewrite,
    rst,
    shift_clock,
    silent,
    slice_,
    stall,
    throttle,
    truncate,
)
from fakebrokers.faults.effects import (
    Coalesce,
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    Fin,
    Inject,
    Latency,
    Rst,
    Slice,
    Truncate,
)
from fakebrokers.journal import Tap
from fakebrokers.session import HangUp
from tests.core import Talk
from tests.toy import Value

# drop


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


# delay and latency


def test_delay_lets_others_pass() -> None:
    talk = Talk(delay(0.5, role="confirm", nth=1))
    assert talk.send(b"put a", b"put b") == [b"stored b\n"]
    assert talk.at(0.4) == []
    assert talk.at(0.5) == [b"stored a\n"]


def test_delay_in() -> None:
    talk = Talk(delay(0.5, kind="Put", nth=1))
    assert talk.send(b"put a x", b"put a y") == [b"stored a\n"]
    talk.at(0.5)
    assert talk.broker.values == {"a": "x"}


def test_latency_keeps_order() -> None:
    talk = Talk(latency(0.5, role="confirm", nth=1))
    assert talk.send(b"put a", b"put b") == []
    talk.now = 0.2
    assert talk.send(b"put c") == []
    assert talk.at(0.49) == []
    assert talk.at(0.5) == [b"stored a\nstored b\nstored c\n"]
    assert talk.send(b"put d") == [b"stored d\n"]


def test_latency_each_way_with_jitter() -> None:
    talk = Talk(latency(0.3, jitter=0.1), seed=3)
    arrivals = []
    for number in range(20):
        talk.now += 0.01
        talk.send(b"put %d" % number)
    for step in range(200):
        if talk.at(0.2 + step * 0.01):
            arrivals.append(talk.now)
    confirms = [r for r in talk.records("Stored") if r.tap is Tap.SENT]
    assert [r.keys for r in confirms] == [(str(n),) for n in range(20)]
    assert 0.4 <= arrivals[0] <= 0.82
    assert arrivals[-1] <= 1.1


def test_both_latencies_of_two_rules_add_up() -> None:
    talk = Talk(latency(0.2, role="confirm"), latency(0.3, role="confirm"))
    talk.send(b"put a")
    assert talk.at(0.49) == []
    assert talk.at(0.5) == [b"stored a\n"]


# throttle


def test_throttle_out() -> None:
    talk = Talk(throttle(200, kind="Value"))  # 20 writes of 10 bytes in a second
    talk.send(b"put k " + b"x" * 92)
    assert talk.send(b"get k", b"get k") == [b"value k xx"]
    assert len(b"".join(talk.at(0.46))) == 90
    assert len(b"".join(talk.at(1.01))) == 102
    assert [r.size for r in talk.records("Value") if r.tap is Tap.SENT] == [101, 101]


def test_throttle_in_is_slow_reading() -> None:
    talk = Talk(throttle(1000, direction="in", role="publish"))
    line = b"put k " + b"x" * 493
    assert talk.send(line, line) == []
    assert talk.at(0.49) == []
    assert talk.at(0.5) == [b"stored k\n"]
    assert talk.at(0.99) == []
    assert talk.at(1.0) == [b"stored k\n"]


def test_throttle_in_stops_reading_when_too_much_waits() -> None:
    talk = Talk(throttle(1000, direction="in"))
    for _ in range(40):
        talk.send(b"put k " + b"x" * 50_000)
        if not talk.wire.reading:
            break
    assert not talk.wire.reading
    assert talk.link.pipe.lanes["in"].size < 1_200_000
    talk.at(2000.0)
    assert talk.wire.reading


# duplicate, reorder


def test_duplicate() -> None:
    talk = Talk(duplicate(2, role="confirm", nth=1))
    assert talk.send(b"put a", b"put b") == [b"stored a\nstored a\nstored a\nstored b\n"]
    talk = Talk(duplicate(kind="Put"))
    assert talk.send(b"put a") == [b"stored a\nstored a\n"]


def test_reorder() -> None:
    talk = Talk(reorder(3, role="confirm"))
    assert talk.send(b"put a", b"put b") == []
    assert talk.send(b"put c") == [b"stored c\nstored b\nstored a\n"]
    assert talk.send(b"put d") == []
    assert talk.at(0.5) == [b"stored d\n"]


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


# rewrite, corrupt, truncate, extend


def test_rewrite() -> None:
    talk = Talk(rewrite({"body": "other"}, kind="Value"))
    talk.send(b"put a x")
    assert talk.send(b"get a") == [b"value a other\n"]
    talk = Talk(rewrite(fields={"keys": ["z"]}, kind="Put"))
    assert talk.send(b"put a x") == [b"stored z\n"]


def test_rewrite_adds() -> None:
    talk = Talk(reply(3, kind="Put"), rewrite({"code": {"add": 4}}, kind="Refused"))
    assert talk.send(b"put a") == [b"refused a 3\n"]  # an answer of a fault is not touched again


def test_rewrite_knows_the_fields() -> None:
    with pytest.raises(PlanError, match=r"effect\.fields\.nope: expected one of keys; got 'nope'"):
        Talk(rewrite({"nope": 1}, kind="Stored"))


def test_corrupt() -> None:
    talk = Talk(corrupt(at=0, xor=0x20, kind="Stored"), corrupt(at=-2, xor=1, length=1, kind="Value"))
    assert talk.send(b"put a x", b"get a") == [b"Stored a\nvalue a y\n"]


def test_corrupt_in() -> None:
    talk = Talk(corrupt(at=4, xor=3, kind="Put"))
    assert talk.send(b"put a x") == [b"stored b\n"]


def test_corrupt_draws_its_place_from_the_seed() -> None:
    def place(seed: int) -> bytes:
        return Talk(corrupt(kind="Stored"), seed=seed).send(b"put abcdefgh")[0]

    assert place(1) == place(1)
    assert len({place(seed) for seed in range(10)}) > 3
    assert all(place(seed).startswith(b"stor") for seed in range(10))


def test_truncate() -> None:
    assert Talk(truncate(3, kind="Stored")).send(b"put a") == [b"sto"]
    assert Talk(truncate(keep=-2, kind="Stored")).send(b"put a") == [b"stored "]
    assert Talk(truncate(share=0.5, kind="Stored")).send(b"put a") == [b"stor"]
    assert Talk(truncate(kind="Put")).send(b"put a x") == []


def test_extend() -> None:
    assert Talk(extend("2121", kind="Stored")).send(b"put a") == [b"stored a\n!!"]


# inject, reply


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


# hold and release


def test_hold_and_release() -> None:
    talk = Talk(hold(role="confirm", nth=1, name="h"))
    assert talk.send(b"put a", b"put b") == [b"stored b\n"]
    assert talk.at(100.0) == []
    assert talk.release("h") == [b"stored a\n"]


def test_hold_with_everything_behind() -> None:
    talk = Talk(hold(behind=True, role="confirm", nth=1, name="h"))
    assert talk.send(b"put a", b"get a") == []
    assert talk.release("h") == [b"stored a\nvalue a\n"]
    assert talk.send(b"put b") == [b"stored b\n"]


def test_hold_for_a_while() -> None:
    talk = Talk(hold(for_s=0.3, role="confirm", nth=1))
    assert talk.send(b"put a") == []
    assert talk.at(0.3) == [b"stored a\n"]


def test_hold_all_but_beats() -> None:
    talk = Talk(hold(direction="out", spare=("heartbeat",), name="h"))
    talk.send(b"put a", b"get a")
    talk.now = 1.0
    talk.engine.handle_timers(1.0)
    talk.engine.flush(1.0)
    assert talk.wire.writes == [b"beat\n"]
    talk.wire.writes.clear()
    assert talk.release("h") == [b"welcome\nstored a\nvalue a\n"]


def test_hold_in() -> None:
    talk = Talk(hold(kind="Put", nth=1, name="h"))
    assert talk.send(b"put a 1", b"put a 2") == [b"stored a\n"]
    assert talk.release("h") == [b"stored a\n"]
    assert talk.broker.values == {"a": "1"}


# silent, stall


def test_silent() -> None:
    talk = Talk(silent(role="confirm", nth=1, name="s", spare=("deliver",)))
    assert talk.send(b"put a x", b"get a", b"put b") == [b"value a x\n"]
    assert talk.broker.values == {"a": "x", "b": ""}
    assert talk.release("s") == []
    assert talk.send(b"put c") == [b"stored c\n"]


def test_silent_from_a_clients_frame_on_and_for_a_while() -> None:
    talk = Talk(silent(for_s=0.5, kind="Put", nth=1))
    assert talk.send(b"put a") == []
    assert talk.broker.values == {"a": ""}
    talk.now = 0.6
    assert talk.send(b"get a") == [b"value a\n"]


def test_silent_behind_the_frame() -> None:
    talk = Talk(silent(pass_frame=True, role="confirm", nth=1))
    assert talk.send(b"put a", b"put b") == [b"stored a\n"]


def test_stall_leaves_even_what_came_in_the_same_segment() -> None:
    talk = Talk(stall(kind="Put", nth=1, name="s"))
    assert talk.send(b"put a", b"put b") == [b"stored a\n"]
    assert not talk.wire.reading
    assert talk.seen(Tap.RECEIVED)[-1] == ("received", "Put", ("a",))
    assert talk.release("s") == [b"stored b\n"]
    assert talk.wire.reading


def test_stall_for_a_while_and_others_release() -> None:
    talk = Talk(stall(for_s=1.0, kind="Put", nth=1), hold(role="deliver", name="other"))
    talk.send(b"put a")
    talk.release("other")
    assert not talk.wire.reading
    talk.at(1.0)
    assert talk.wire.reading


# slice, coalesce


def test_slice() -> None:
    talk = Talk(slice_(3, gap_s=0.1, kind="Stored"))
    assert talk.send(b"put a", b"get a") == [b"sto"]
    assert talk.at(0.1) == [b"red"]
    assert talk.at(0.35) == [b" a\n", b"value a\n"]
    assert [r.tap.label for r in talk.records("Stored")] == ["said", "sent"]


def test_slice_without_gap_is_one_write_each() -> None:
    talk = Talk(slice_(size=1, gap_s=0, direction="out"))
    assert talk.send(b"put a") == [bytes([byte]) for byte in b"stored a\n"]


def test_slice_once_in_the_frame_or_in_the_stream() -> None:
    assert Talk(slice_(at=2, gap_s=0, kind="Stored")).send(b"put a") == [b"st", b"ored a\n"]
    assert Talk(slice_(at=-2, gap_s=0, kind="Stored")).send(b"put a") == [b"stored ", b"a\n"]
    # 8 bytes of welcome come before, 9 of the first confirm: byte 20 is the fourth of the second one
    talk = Talk(slice_(at=20, of="stream", byte=20, gap_s=0))
    assert talk.send(b"put a", b"put b") == [b"stored a\n", b"sto", b"red b\n"]


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


# the whole fake


def test_refuse_and_black_hole() -> None:
    talk = Talk(refuse(2.0, kind="Put", name="r"), black_hole(kind="Get", name="b"))
    assert talk.send(b"put a", b"get a") == [b"stored a\nvalue a\n"]
    assert talk.wire.host == [("refuse", 2.0, "r"), ("black_hole", None, "b")]


@pytest.mark.parametrize("keep", [True, False])
def test_crash(keep: bool) -> None:
    talk = Talk(crash(keep_state=keep, role="confirm", nth=1, scope="run", restart_s=1.0, name="c"))
    other = talk.wire
    talk.connect()
    assert talk.send(b"put a x", b"put b") == []
    assert (talk.wire.ended, other.ended) == (HangUp.RST, HangUp.RST)
    assert other.host == [("down", 1.0, "c")]
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


# several effects in one fault


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
