"""Pauses of bases where time is real."""

from __future__ import annotations

import asyncio

import pytest

from conformance.run.pace import (
    LONG_S,
    LOOK_EVERY_S,
    PAUSE_S,
    QUIET_S,
    TOUCHED_QUIET_S,
    Pace,
    RealPace,
)
from conformance.run.trace import Trace
from fakebrokers.core import virtual

A_MINUTE_S = 59.0  #: more than anybody waits for, and no pause in which back-offs end


def slept_s(seconds: float, trace: Trace, **more: object) -> float:
    async def work() -> float:
        await RealPace(trace, [], **more).sleep(seconds)  # type: ignore[arg-type]
        return asyncio.get_running_loop().time()

    return virtual.run(work())


def about(seconds: float) -> object:
    """It looks every now and then."""
    return pytest.approx(seconds, abs=1.01 * LOOK_EVERY_S)


def trace_of(*rows: tuple[str, str, object]) -> Trace:
    trace = Trace(lambda: 0.0)
    for what, connection, data in rows:
        trace.note(what, data, connection)  # type: ignore[arg-type]
    return trace


def test_a_client_that_rests_is_waited_for_no_longer() -> None:
    rows = [("accept", "c1", ""), ("op", "", "x"), ("answer", "", 1)]
    assert slept_s(A_MINUTE_S, trace_of(*rows)) == about(QUIET_S)


def test_a_short_pause_lasts_as_it_is_written() -> None:
    assert slept_s(2.5, trace_of(("accept", "c1", ""))) == 2.5


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
    assert slept_s(A_MINUTE_S, trace_of(*rows)) == about(PAUSE_S)


def test_a_connection_that_was_replaced_is_not_missed() -> None:
    rows = [("accept", "c1", ""), ("end", "c1", ("broker", "")), ("accept", "c2", "")]
    assert slept_s(A_MINUTE_S, trace_of(*rows)) == about(TOUCHED_QUIET_S)


def test_connections_say_nothing_where_each_request_makes_one() -> None:
    assert slept_s(A_MINUTE_S, trace_of(), counts=False) == about(QUIET_S)


def test_a_base_that_waits_for_back_offs_gets_more() -> None:
    assert slept_s(100.0, trace_of()) == about(LONG_S)


def test_nobody_waits_for_a_dead_client() -> None:
    assert slept_s(A_MINUTE_S, trace_of(), is_alive=lambda: False) == 0.0


def test_a_virtual_clock_has_all_the_time() -> None:
    async def work() -> float:
        await Pace().sleep(1200.0)
        return asyncio.get_running_loop().time()

    assert virtual.run(work()) == 1200.0
