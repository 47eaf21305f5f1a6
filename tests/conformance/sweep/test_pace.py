"""Pauses of bases where time is real."""

from __future__ import annotations

import asyncio
import time

import pytest

from conformance.sweep import pace
from conformance.sweep.pace import Pace, RealPace
from conformance.sweep.tape import Tape

LONG_S = 5.0
PAUSE_S = 0.3


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (
        ("QUIET_S", 0.05),
        ("TOUCHED_QUIET_S", 0.1),
        ("LONG_S", 0.6),
        ("LOOK_EVERY_S", 0.01),
    ):
        monkeypatch.setattr(pace, name, seconds)


def slept_s(seconds: float, tape: Tape, **more: object) -> float:
    own = RealPace(tape, [], pause_s=PAUSE_S, **more)  # type: ignore[arg-type]
    begun = time.monotonic()
    asyncio.run(own.sleep(seconds))
    return time.monotonic() - begun


def tape_of(*rows: tuple[str, str, object]) -> Tape:
    tape = Tape(time.monotonic)
    for what, connection, data in rows:
        tape.note(what, data, connection)  # type: ignore[arg-type]
    return tape


def test_a_client_that_rests_is_waited_for_no_longer() -> None:
    assert slept_s(LONG_S, tape_of(("accept", "c1", ""), ("op", "", "x"), ("answer", "", 1))) < 0.2


def test_a_short_pause_lasts_as_it_is_written() -> None:
    assert 0.25 <= slept_s(0.25, tape_of(("accept", "c1", ""))) < 0.4


@pytest.mark.parametrize(
    "rows",
    [
        [("accept", "c1", ""), ("op", "", "x")],
        [("accept", "c1", ""), ("end", "c1", ("broker", ""))],
        [("accept", "c1", ""), ("accept", "c2", ""), ("end", "c1", ("broker", ""))],
        [],
    ],
    ids=["an op is open", "the connection is lost", "one of two is lost", "nobody came"],
)
def test_what_may_still_come_gets_the_whole_pause(rows: list[tuple[str, str, object]]) -> None:
    assert slept_s(LONG_S, tape_of(*rows)) >= PAUSE_S - 0.02


def test_a_connection_that_was_replaced_is_not_missed() -> None:
    rows = [("accept", "c1", ""), ("end", "c1", ("broker", "")), ("accept", "c2", "")]
    assert slept_s(LONG_S, tape_of(*rows)) < 0.25


def test_connections_say_nothing_where_each_request_makes_one() -> None:
    assert slept_s(LONG_S, tape_of(), counts=False) < 0.2


def test_a_base_that_waits_for_back_offs_gets_more() -> None:
    assert slept_s(100.0, tape_of()) >= 0.55


def test_nobody_waits_for_a_dead_client() -> None:
    assert slept_s(LONG_S, tape_of(), is_alive=lambda: False) < 0.05


def test_a_virtual_clock_has_all_the_time() -> None:
    begun = time.monotonic()
    asyncio.run(Pace().sleep(0.12))
    assert time.monotonic() - begun >= 0.12
