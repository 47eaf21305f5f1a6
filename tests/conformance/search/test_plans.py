"""A replay file is a plan for any client: the same faults at the same frames, and times."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.run.inprocess import runner
from conformance.run.specs import Injection, Spec
from conformance.search.random.replay import replay_of as chaos_file
from conformance.search.random.run import runner as chaos_runner
from conformance.search.random.schedule import Schedule
from conformance.search.random.verdict import verdict_on
from conformance.search.systematic.replay import replay_of
from fakebrokers import RabbitMQStream
from fakebrokers.errors import PlanError
from fakebrokers.faults import load_plan
from fakebrokers.faults.effects import Crash, Rst, Truncate
from fakebrokers.faults.steps import Step

PROTOCOL = "rabbitmq-stream"
SMALL = {"sessions": 1, "targets": 1, "rate": 10, "size": 10}


def swept(folder: Path, *injections: Injection) -> Path:
    case = runner(PROTOCOL)(Spec(PROTOCOL, "publish", injections))
    return replay_of("reference", "", case, []).write(folder)


def shaken(folder: Path, *steps: Step) -> Path:
    case = chaos_runner(PROTOCOL)(Schedule(PROTOCOL, "publish", SMALL, steps, seconds=1.0, seed="7"))
    return chaos_file("reference", "", case, verdict_on(case)).write(folder)


def test_the_faults_of_a_sweep(tmp_path: Path) -> None:
    plan = load_plan(swept(tmp_path, Injection("c1", "out", 9, "cut", 6)), PROTOCOL)
    [fault] = plan.faults
    assert [type(effect) for effect in fault.effects] == [Truncate, Rst]
    assert (fault.match.connection, fault.match.direction, fault.match.nth) == ("c1", "out", 9)


def test_an_act_that_reads_the_frame_is_a_row_too(tmp_path: Path) -> None:
    path = swept(tmp_path, Injection("c1", "out", 9, "contradict", ["instead", 5]))
    with RabbitMQStream(faults=path) as broker:
        [row] = broker.faults.plan.to_dict()["faults"]
    assert row["effect"] == {
        "type": "act", "act": "contradict", "param": ["instead", 5], "protocol": PROTOCOL
    }  # fmt: skip


def test_the_faults_of_chaos_begin_at_their_times(tmp_path: Path) -> None:
    path = shaken(tmp_path, Step("crash", 0.5, 2.0, {"how": "fin"}, "step1"))
    plan = load_plan(path)
    [fault] = plan.faults
    assert isinstance(fault.effects[0], Crash)
    assert (fault.match.from_s, fault.match.until_s, plan.seed) == (0.5, 2.5, 7)


def test_what_only_a_run_can_do_is_named(tmp_path: Path) -> None:
    path = shaken(tmp_path, Step("pause", 0.5, 2.0, {}, "step1"))
    with pytest.raises(
        PlanError, match=r"'fakebrokers replay' can do this, and no plan: 0\.5 s to 2\.5 s: pause"
    ):
        load_plan(path)


def test_a_replay_of_another_protocol_is_refused(tmp_path: Path) -> None:
    path = swept(tmp_path, Injection("c1", "out", 9, "rst"))
    with pytest.raises(PlanError, match="expected a replay of pzq, got one of rabbitmq-stream"):
        load_plan(path, "pzq")
