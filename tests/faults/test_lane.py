"""A lane against a simple model: order, times, held and parked frames."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.session import HangUp
from fakebrokers.core.timers import Timers
from fakebrokers.faults.lane import Lane
from fakebrokers.faults.parcel import Parcel

Moves = list[tuple[float, str, float]]
MOVES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.1, 0.5]),  # passes before the move
        st.sampled_from(["plain", "delay_s", "hold_s", "transmit_s", "gap_s"]),
        st.sampled_from([0.0, 0.2, 1.0]),
    ),
    max_size=20,
)


def new_lane() -> Lane:
    return Lane(lambda: Timers().new(lambda now: None))


def parcel(raw: str, size: int = 1, **how: float) -> Parcel:
    return Parcel(raw=raw, size=size, **how)


def names(parcels: list[Parcel]) -> list[str]:
    return [each.raw for each in parcels]


@given(MOVES)
def test_everything_arrives_once_and_only_what_is_late_is_overtaken(moves: Moves) -> None:
    lane, now, arrived = new_lane(), 0.0, []
    earliest = {}
    for number, (pause, kind, seconds) in enumerate(moves):
        now += pause
        arrived += names(lane.take(now))
        lane.put(parcel(f"{kind}{number}", **({} if kind == "plain" else {kind: seconds})), now)
        earliest[f"{kind}{number}"] = now + (0 if kind in ("plain", "gap_s") else seconds)
    while not lane.idle:
        due = lane.timer.due
        assert due < math.inf
        now = max(now, due)
        for name in names(lane.take(now)):
            assert now >= earliest[name] - 1e-9
            arrived.append(name)
    everything = [f"{kind}{number}" for number, (_, kind, _) in enumerate(moves)]
    assert sorted(arrived) == sorted(everything)
    in_line = [name for name in arrived if not name.startswith("delay_s")]
    assert in_line == [name for name in everything if not name.startswith("delay_s")]
    assert lane.size == 0


def test_times() -> None:
    lane = new_lane()
    lane.put(parcel("a", gap_s=1.0), 0.0)
    lane.put(parcel("b", transmit_s=0.5), 0.0)
    lane.put(parcel("c", delay_s=0.2), 0.0)
    lane.put(parcel("d", hold_s=0.1), 0.0)
    assert [(at, names(lane.take(at))) for at in (0.0, 0.2, 1.4, 1.5)] == [
        (0.0, ["a"]),
        (0.2, ["c"]),
        (1.4, []),
        (1.5, ["b", "d"]),
    ]
    assert lane.idle


def test_hold_and_park() -> None:
    lane = new_lane()
    lane.hold("h", math.inf)
    lane.put(parcel("a"), 0.0)
    lane.park("p", parcel("b", size=5), math.inf)
    lane.park("p", parcel("c"), 2.0)
    assert (lane.take(1.0), lane.size, lane.timer.due) == ([], 7, 2.0)
    assert lane.release("h", 1.0)
    assert names(lane.take(1.0)) == ["a"]
    assert names(lane.take(2.0)) == ["c"]
    assert not lane.release("h", 2.0)
    assert lane.release("p", 3.0)
    assert names(lane.take(3.0)) == ["b"]
    assert (lane.idle, lane.size) == (True, 0)


def test_of_several_parked_ones_each_leaves_at_its_time() -> None:
    lane = new_lane()
    for name, until in (("a", 3.0), ("b", 1.0), ("c", 2.0), ("d", 4.0)):
        lane.park("p", parcel(name), until)
    left = []
    for now in (1.0, 2.0, 3.0, 4.0):
        assert lane.timer.due == now
        left.append(names(lane.take(now)))
    assert left == [["b"], ["c"], ["a"], ["d"]]
    assert (lane.idle, lane.size) == (True, 0)


def test_hold_ends_by_itself() -> None:
    lane = new_lane()
    lane.hold("h", 1.0)
    lane.put(parcel("a"), 0.0)
    assert lane.timer.due == 1.0
    assert names(lane.take(1.0)) == ["a"]


def test_gather_waits_for_the_end_of_the_connection_too() -> None:
    lane = new_lane()
    lane.gather(2, 5.0)
    lane.put(parcel("a"), 0.0)
    lane.put(Parcel(end=HangUp.RST), 0.0)
    assert (lane.take(1.0), lane.timer.due) == ([], 5.0)
    lane.put(parcel("b"), 2.0)
    assert [each.raw or each.end for each in lane.take(2.0)] == ["a", "b", HangUp.RST]
    assert lane.idle


def test_what_is_in_line_when_the_client_leaves() -> None:
    lane = new_lane()
    lane.put(parcel("later", delay_s=9.0), 0.0)
    lane.put(parcel("sooner", hold_s=1.0), 0.0)
    lane.park("p", parcel("parked"), math.inf)
    assert names(lane.rest()) == ["sooner", "later"]
    assert lane.idle
    lane.hold("h", math.inf)
    lane.put(parcel("held"), 0.0)
    assert lane.rest() == []
