"""Faults that begin and end at their own time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.core.session import HangUp
from fakebrokers.core.virtual import run
from fakebrokers.errors import PlanError
from fakebrokers.faults import Fault, corrupt, drop, duplicate, fin, hold, rst, shift_clock
from fakebrokers.faults.disturbances import (
    Args,
    Rows,
    black_hole,
    clock_shift,
    crash,
    cut,
    later,
    node_flap,
    partition,
    refuse,
    rolling_restart,
    slow_link,
)
from fakebrokers.faults.match import Match
from fakebrokers.faults.plan import Plan, load_plan
from fakebrokers.faults.timetable import Timetable
from tests.core.talk import Talk


def started(*faults: Fault) -> Talk:
    talk = Talk(*faults)
    timetable = talk.engine.injector.timetable = Timetable(talk.engine)
    timetable.start(0.0)
    return talk


def test_a_fault_is_at_work_from_its_beginning_to_its_end() -> None:
    talk = started(drop(role="confirm", from_s=1.0, until_s=2.0))
    assert talk.send(b"put a") == [b"stored a\n"]
    talk.at(1.0)
    assert talk.send(b"put b") == []
    talk.at(2.0)
    assert talk.send(b"put c") == [b"stored c\n"]
    assert list(talk.engine.injector.names()) == []


def test_before_the_fake_serves_no_time_passes() -> None:
    talk = Talk(drop(role="confirm", until_s=2.0))
    assert talk.send(b"put a") == [b"stored a\n"]
    Timetable(talk.engine).start(0.0)
    assert talk.send(b"put b") == []


def test_what_waits_is_counted_when_it_has_begun() -> None:
    talk = started(drop(role="confirm", nth=1, from_s=1.0))
    talk.send(b"put a")
    talk.at(1.0)
    assert talk.send(b"put b", b"put c") == [b"stored c\n"]


def test_what_it_holds_back_comes_at_its_end() -> None:
    talk = started(hold(behind=True, direction="out", until_s=2.0))
    assert talk.send(b"put a", b"put b") == []
    assert talk.at(1.9) == []
    assert talk.at(2.0) == [b"stored a\nstored b\n"]


def test_when_it_begins_it_acts_on_each_open_connection() -> None:
    talk = started(rst(on="begin", from_s=1.0))
    talk.connect()
    talk.at(1.0)
    assert [wire.ended for wire in talk.wires] == [HangUp.RST, HangUp.RST]
    assert talk.connect().ended is None


def test_or_on_that_which_it_names() -> None:
    talk = started(fin(on="begin", from_s=1.0, connection="c2"))
    talk.connect()
    talk.at(1.0)
    assert [wire.ended for wire in talk.wires] == [None, HangUp.FIN]


def test_the_fake_as_a_whole_needs_no_connection_and_is_as_before_at_the_end() -> None:
    talk = started(shift_clock(60.0, on="begin", from_s=1.0, until_s=3.0))
    talk.links[0].lost(0.0)
    shifts = []
    for now in (0.9, 1.0, 2.9, 3.0):
        talk.at(now)
        shifts.append(talk.engine.clock.shift_s)
    assert shifts == [0.0, 60.0, 60.0, 0.0]
    assert talk.engine.errors == []


def test_a_jump_without_an_end_stays() -> None:
    talk = started(shift_clock(60.0, on="begin", name="jump"))
    talk.release("jump")
    assert talk.engine.clock.shift_s == 60.0


def test_what_is_taken_out_before_its_time_never_begins() -> None:
    talk = started(rst(on="begin", from_s=1.0, name="one"), rst(on="begin", from_s=1.0, name="other"))
    talk.engine.injector.remove("one")
    talk.engine.injector.clear()
    talk.at(2.0)
    assert talk.wire.ended is None


def test_faults_act_in_the_order_of_the_plan_whenever_they_begin() -> None:
    twice, broken = duplicate(role="confirm", from_s=1.0), corrupt(at=0, xor=0x20, role="confirm")
    talk = started(twice, broken)
    talk.at(1.0)
    assert talk.send(b"put a") == [b"Stored a\nStored a\n"]


def test_time_counts_from_when_it_was_added() -> None:
    async def work() -> list[bool]:
        broker = RabbitMQStream(memory=True)
        broker.start()
        await asyncio.sleep(5.0)
        broker.faults.add(shift_clock(1.0, on="begin", from_s=2.0, until_s=3.0))
        seen = []
        for _ in range(4):
            seen.append(broker.engine.clock.shift_s != 0.0)
            await asyncio.sleep(1.0)
        broker.stop()
        return seen

    assert run(work()) == [False, False, True, False]


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ({"from_s": -1.0}, r"from_s: expected seconds from 0, got -1"),
        ({"from_s": 2.0, "until_s": 2.0}, r"until_s: expected seconds above 2, as `from_s` says, got 2"),
        ({"on": "begin", "nth": 2}, r'nth: expected none: on = "begin" comes once'),
        ({"on": "begin", "skip": 1}, r'skip: expected none: on = "begin" comes once'),
        ({"skip": -1}, r"skip: expected a count from 0, got -1"),
        ({"skip": 2, "nth": 2}, r"nth: expected more than 2, as `skip` says, got 2"),
        ({"skip": 2, "first": 1}, r"first: expected more than 2, as `skip` says, got 1"),
    ],
)
def test_times_and_counts_that_make_no_sense(match: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        rst(**match)


def test_the_first_ones_are_skipped() -> None:
    match = Match(skip=2, first=4)
    assert [n for n in range(1, 7) if match.position_fits(n)] == [3, 4]


def test_a_hidden_fault_moves_the_clock_for_good() -> None:
    talk = started()
    talk.engine.injector.hide([shift_clock(60.0, kind="Put", name="hidden")], 0.0)
    for pipe in talk.engine.injector.pipes.values():
        pipe.refresh()
    talk.send(b"put a")
    assert (talk.engine.clock.shift_s, talk.engine.errors) == (60.0, [])


def test_who_listens_hears_of_each_time() -> None:
    talk = started(
        rst(on="begin", from_s=1.0, name="end"), shift_clock(1.0, on="begin", from_s=2.0, name="jump")
    )
    heard: list[tuple[str, str]] = []
    talk.engine.injector.listener = lambda fault, connection: heard.append((fault, connection))
    talk.at(2.0)
    assert heard == [("end", "c1"), ("jump", "")]


HOW = {"how": "rst", "times": 2}
DISTURBANCES: list[tuple[Rows, Args]] = [
    (partition, {}),
    (partition, {"directions": ("in",)}),
    (slow_link, {"delay_s": 0.1, "jitter_s": 0.05, "bytes_per_s": 2000}),
    (crash, {"how": "fin"}),
    (rolling_restart, HOW),
    (rolling_restart, {**HOW, "nodes": 3}),
    (node_flap, {"node": 2, "times": 2}),
    (cut, HOW),
    (clock_shift, {"seconds": -60.0}),
    (refuse, {}),
    (black_hole, {}),
]


@pytest.mark.parametrize(("rows", "args"), DISTURBANCES)
def test_every_disturbance_is_a_plan_that_can_be_written_and_read(rows: Rows, args: Args) -> None:
    made = [later(row, 3.0) for row in rows("step1", 4.0, args)]
    plan = load_plan(made, "rabbitmq-stream")
    assert load_plan({"faults": plan.to_dict()["faults"]}, "rabbitmq-stream") == Plan(faults=plan.faults)
    assert all(fault.name.startswith("step1") and fault.match.from_s >= 3.0 for fault in plan.faults)
    assert len({fault.name for fault in plan.faults}) == len(plan.faults)


@pytest.mark.parametrize(("rows", "args"), DISTURBANCES)
def test_after_every_disturbance_the_fake_is_as_before(rows: Rows, args: Args) -> None:
    async def work() -> None:
        broker = RabbitMQStream(memory=True, nodes=3, faults=rows("step1", 4.0, args))
        broker.start()
        await asyncio.sleep(20.0)
        at_the_fake = [each for each in broker.engine.injector.ever if each.fault.match.on == "begin"]
        assert rows is cut or all(each.fired for each in at_the_fake)  # a cut needs connections
        assert broker.faults.names == ()
        assert broker.engine.clock.shift_s == 0.0
        assert all(node.up for node in broker.nodes)
        broker.connect_memory(asyncio.Protocol())
        broker.check()
        broker.stop()

    run(work())
