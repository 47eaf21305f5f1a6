"""An orderly end: the client gets every byte that was said before the FIN, whatever faults hold back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakebrokers.core.session import HangUp
from fakebrokers.core.virtual import run
from fakebrokers.faults import (
    Fault,
    coalesce,
    delay,
    drop,
    fault,
    fin,
    hold,
    inject,
    latency,
    reorder,
    rst,
    silent,
    slice_,
    throttle,
)
from fakebrokers.faults.effects import Delay, Fin
from fakebrokers.journal import Tap
from tests.core.talk import Talk
from tests.core.test_tcp import everything
from tests.test_server import client
from tests.toy import Lines, Toy

#: Each way to make a confirm late, by seconds.
LATE: dict[str, Callable[[float], Fault]] = {
    "delay": lambda s: delay(s, role="confirm", nth=1),
    "delay, each differently": lambda s: delay(s, jitter=s, role="confirm"),
    "latency": lambda s: latency(s, role="confirm", nth=2),
    "parked": lambda s: hold(role="confirm", nth=1, for_s=s),
    "held": lambda s: hold(role="confirm", nth=2, behind=True, for_s=s),
    "reordered, never complete": lambda s: reorder(4, within_s=s, role="confirm"),
    "throttled": lambda s: throttle(int(9 / s), role="confirm"),
    "in slices": lambda s: slice_(3, gap_s=s / 3, role="confirm"),
    "gathered": lambda s: coalesce(within_s=s, role="confirm", nth=1),
}
SAID = sorted([b"stored a", b"stored b", b"stored c", b"bye"])


def test_the_end_waits_for_what_is_parked_however_long() -> None:
    talk = Talk(hold(role="confirm", nth=1, name="h"))
    assert talk.send(b"put a", b"put b", b"bye") == [b"stored b\nbye\n"]
    talk.at(1000.0)
    assert talk.wire.ended is None
    assert talk.link.name in talk.engine.connections
    assert talk.release("h") == [b"stored a\n"]
    assert talk.wire.ended is HangUp.FIN
    assert talk.engine.connections == {}


def test_while_the_end_waits_the_broker_neither_says_nor_hears() -> None:
    talk = Talk(delay(5.0, role="confirm", nth=1), drop(role="deliver", name="d"))
    talk.send(b"put a", b"bye", b"put b")
    ticks: list[float] = []
    talk.link.session_timer(ticks.append).set(1.0)
    assert talk.send(b"put c", b"get a") == []
    talk.link.inject(b"by hand\n")
    assert talk.at(4.9) == []
    talk.link.hang_up()
    assert talk.at(5.0) == [b"stored a\n"]
    assert list(talk.broker.values) == ["a"]
    assert talk.engine.injector.find("d").seen == 0
    assert not talk.records("Beat")
    assert (ticks, len(talk.records("fin"))) == ([], 1)


def test_a_fault_that_ends_the_connection_waits_too() -> None:
    talk = Talk(fault(Delay(seconds=2.0), Fin(), role="confirm"))
    assert talk.send(b"put a", b"put b") == []
    assert talk.at(1.9) == []
    assert talk.at(2.0) == [b"stored a\n"]
    assert talk.wire.ended is HangUp.FIN


def test_an_end_that_comes_later_waits_for_what_is_late_by_then() -> None:
    talk = Talk(fin(after_s=1.0, role="confirm", nth=1, name="end"), delay(3.0, role="deliver"))
    assert talk.send(b"put a") == [b"stored a\n"]
    assert talk.send(b"get a") == []
    talk.at(1.0)
    assert talk.send(b"put b") == []
    record = talk.records("Stored")[-1]
    assert record.tap is Tap.SAID
    assert talk.engine.injector.find("end").seen == 1
    assert talk.at(3.0) == [b"value a\n"]
    assert talk.wire.ended is HangUp.FIN


@pytest.mark.parametrize("make", [drop, silent])
def test_what_a_fault_drops_is_not_waited_for(make: Callable[..., Fault]) -> None:
    talk = Talk(make(role="confirm", nth=1))
    talk.send(b"put a", b"bye")
    assert talk.wire.ended is HangUp.FIN


@pytest.mark.parametrize("end", ["reset by the broker", "reset by a fault", "killed", "crash", "client"])
def test_nothing_but_an_orderly_end_waits(end: str) -> None:
    talk = Talk(delay(5.0, role="confirm", nth=1), rst(kind="Get"))
    talk.send(b"put a")
    match end:
        case "reset by the broker":
            talk.link.hang_up(HangUp.RST)
        case "reset by a fault":
            talk.send(b"get a")
        case "killed":
            talk.link.hang_up()
            talk.engine.kill(talk.link, HangUp.FIN, 0.0)
        case "crash":
            talk.link.hang_up()
            talk.engine.crash(HangUp.RST, True, 0.0)
        case _:
            talk.link.hang_up()
            talk.engine.lost(talk.link, 0.0)
    assert talk.at(0.0) == []
    assert talk.engine.connections == {}
    assert talk.at(9.0) == []


def test_a_reset_overtakes_an_end_that_waits() -> None:
    talk = Talk(delay(5.0, role="confirm", nth=1))
    talk.send(b"put a", b"bye")
    talk.link.hang_up(HangUp.RST)
    talk.at(0.0)
    assert talk.wire.ended is HangUp.RST


def test_the_end_of_one_direction_waits_and_then_that_of_the_other() -> None:
    talk = Talk(hold(role="confirm", nth=1, name="h"), inject("Beat", on="idle", after_s=3.0))
    talk.send(b"put a")
    talk.link.end_output()
    assert talk.send(b"put b") == []
    assert talk.at(5.0) == []
    assert talk.release("h") == [b"stored a\n", b"<fin>"]
    assert talk.wire.ended is None
    assert talk.at(9.0) == []
    talk.link.hang_up()
    talk.at(9.0)
    assert talk.wire.ended is HangUp.FIN
    assert list(talk.broker.values) == ["a", "b"]


KINDS = st.sampled_from(["put", "get", "wait"])


@given(
    st.lists(st.tuples(KINDS, st.sampled_from([0.0, 0.3, 2.0])), max_size=12),
    st.lists(
        st.tuples(st.sampled_from([*LATE]), st.floats(0.01, 3.0), st.sampled_from(["confirm", "deliver"])),
        max_size=4,
    ),
)
@example([("put", 0.0), ("get", 0.3)], [("delay", 1.0, "confirm"), ("parked", 2.0, "confirm")])
def test_the_bytes_before_the_end_are_all_that_was_said(
    acts: list[tuple[str, float]], late: list[tuple[str, float, str]]
) -> None:
    faults = []
    for kind, seconds, role in late:
        made = LATE[kind](seconds)
        faults.append(Fault(effects=made.effects, match=type(made.match)(role=role)))
    talk, got = Talk(*faults), []
    for act, pause in acts:
        got += talk.send(f"{act} k".encode()) if act != "wait" else []
        got += talk.at(talk.now + pause)
    got += talk.send(b"bye", b"put never")
    while talk.wire.ended is None:
        got += talk.at(min(talk.engine.next_deadline(), talk.now + 1000.0))
    said = {"put": b"stored k\n", "get": b"value k\n", "wait": b""}
    everything_said = b"".join(said[act] for act, _ in acts) + b"bye\n"
    assert sorted(b"".join(got)) == sorted(everything_said)  # pieces of one frame may overtake each other
    assert talk.wire.ended is HangUp.FIN
    assert len(talk.seen(Tap.SAID)) == len(talk.seen(Tap.SENT))


@pytest.mark.parametrize("kind", LATE)
def test_in_memory(kind: str) -> None:
    async def main() -> None:
        with Toy(memory=True) as toy:
            toy.faults.add(LATE[kind](2.0))
            lines = Lines()
            link = toy.connect_memory(lines)
            link.write(b"put a\nput b\nput c\nbye\nput d\n")
            await asyncio.sleep(1.0)
            assert not lines.ended
            await asyncio.sleep(60.0)
            assert sorted(lines.heard.splitlines()) == SAID
            assert lines.ended == "fin"
            assert list(toy.broker.values) == ["a", "b", "c"]

    run(main())


def test_in_memory_to_a_client_that_does_not_read() -> None:
    async def main() -> None:
        with Toy(memory=True) as toy:
            lines = Lines()
            link = toy.connect_memory(lines)
            link.pause_reading()
            link.write(b"put a\nput b\nput c\nbye\n")
            await asyncio.sleep(1.0)
            assert (lines.heard, lines.ended) == (b"", "")
            link.resume_reading()
            await asyncio.sleep(1.0)
            assert sorted(lines.heard.splitlines()) == SAID
            assert lines.ended == "fin"

    run(main())


@pytest.mark.parametrize("kind", LATE)
def test_on_sockets(kind: str) -> None:
    with Toy() as toy, client(toy) as sock:
        toy.faults.add(LATE[kind](0.02))
        sock.sendall(b"put a\nput b\nput c\nbye\n")
        got, end = everything(sock)
        assert sorted(got.splitlines()) == SAID
        assert end == "fin"


def test_on_sockets_to_a_client_that_reads_late() -> None:
    with Toy() as toy, client(toy) as sock:
        toy.faults.add(hold(role="confirm", nth=1, name="h"))
        sock.sendall(b"put k " + b"x" * 5_000_000 + b"\nget k\nbye\n")
        toy.wait_for(kind="Bye", tap=Tap.SAID)
        toy.faults.release("h")
        toy.wait_for(kind="fin")
        got, end = everything(sock)
        assert sorted(map(len, got.splitlines())) == [3, 8, 5_000_008]
        assert end == "fin"
