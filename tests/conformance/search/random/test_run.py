"""A run: safety, healing, liveness; the same schedule gives the same journal and verdict, bit for bit."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from conformance.run.inprocess import client_of
from conformance.search.random.case import ChaosCase
from conformance.search.random.context import ChaosContext
from conformance.search.random.draw import Setting, available, draw
from conformance.search.random.material import material_of
from conformance.search.random.nemesis import Nemesis
from conformance.search.random.run import run, runner
from conformance.search.random.schedule import Schedule
from conformance.search.random.verdict import Word, verdict_on
from conformance.search.random.workload import SCRIPT
from fakebrokers.faults import Realism
from fakebrokers.faults.steps import Step
from fakebrokers.protocol import find_protocol, protocol_names

PROTOCOLS = protocol_names()[:5]  #: other tests may register more
SMALL = {"sessions": 1, "targets": 1, "rate": 5.0, "size": 0, "publishers": 1, "messages": 6, "waits": 1.0}
READS = {**SMALL, "consumers": 1, "puts": 6, "sleep_ms": 0, "requests": 3, "nodes": 3}


def schedule_of(protocol: str, *steps: Step) -> Schedule:
    params = {name: value for name, value in READS.items() if protocol != "moleculer" or name != "publishers"}
    if protocol not in ("rabbitmq-stream", "blazingmq"):
        params.pop("nodes")
    return Schedule(protocol, "mixed", params, steps, seconds=4.0)


@cache
def undisturbed(protocol: str) -> str:
    """The digest of the small run without any step."""
    return runner(protocol)(schedule_of(protocol)).digest


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_equal_schedules_run_alike(protocol: str) -> None:
    go = runner(protocol)
    for seed in ("3", "4"):
        schedule = draw(Setting(protocol, Realism.ILLEGAL), seed)
        first, second = go(schedule), go(schedule)
        assert first.digest
        assert first.digest == second.digest
        assert verdict_on(first) == verdict_on(second)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_correct_client_passes(protocol: str) -> None:
    go = runner(protocol)
    for realism in Realism:
        for seed in range(2):
            verdict = verdict_on(go(draw(Setting(protocol, realism), f"correct {seed}")))
            assert verdict.word is Word.PASS, (seed, realism, verdict)


@pytest.mark.parametrize("able", [True, False])
def test_a_session_is_asked_to_reconnect_where_the_client_can(able: bool) -> None:
    """A library may reconnect by default, or not, or for producers alone: checkers expect it of all."""

    class Client(client_of("rabbitmq-stream")):  # type: ignore[misc] # made where it is asked for
        caps = client_of("rabbitmq-stream").caps

    if not able:
        Client.caps = Client.caps.replace("auto_reconnect ", "")
    case = run(Client, schedule_of("rabbitmq-stream"))
    asked = [done.args["options"].get("auto_reconnect") for done in case.ops if done.op == "connect"]
    assert asked == [True if able else None]
    assert case.reconnects is able


def test_a_busy_machine_with_another_name_runs_a_schedule_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node's heartbeat says how busy its machine is, and its INFO what it is called."""
    schedule = draw(Setting("moleculer"), "2")
    first = runner("moleculer")(schedule).digest
    monkeypatch.setattr("os.getloadavg", lambda: (64.0, 64.0, 64.0))
    monkeypatch.setattr("platform.node", lambda: "a-machine-with-a-long-name.example")
    assert runner("moleculer")(schedule).digest == first


def _nemeses() -> list[tuple[str, str]]:
    return [
        (protocol, nemesis.name)
        for protocol in PROTOCOLS
        for nemesis in material_of(protocol).nemeses.values()
        if not nemesis.needs_process
    ]


@pytest.mark.parametrize(("protocol", "name"), _nemeses())
def test_every_nemesis_takes_place_is_healed_and_is_borne_by_the_correct_client(
    protocol: str, name: str
) -> None:
    nemesis: Nemesis = material_of(protocol).nemeses[name]
    args = nemesis.draw(Random(1), READS, find_protocol(protocol).wires[0])
    assert args is not None
    case = runner(protocol)(schedule_of(protocol, Step(name, 0.3, 1.5, args, "step1")))
    [band] = case.bands
    assert band["kind"] == name
    assert band["begin_s"] < band["end_s"] or name in ("redelivery", "expiry", "identity", "cut")
    verdict = verdict_on(case)
    assert verdict.word is Word.PASS, verdict
    assert case.log is not None
    assert case.digest != undisturbed(protocol)


def test_a_cut_that_is_shorter_than_its_pauses_comes_as_often_as_it_says() -> None:
    step = Step("cut", 0.5, 0.2, {"how": "rst", "times": 2}, "step1")
    case = runner("rabbitmq-stream")(schedule_of("rabbitmq-stream", step))
    [band] = case.bands
    ends = {round(row.t - band["begin_s"], 6) for row in case.rows if row.what == "end"}
    assert ends >= {0.0, 0.5}


def test_a_node_that_comes_and_goes_disturbs_no_longer_than_that() -> None:
    step = Step("node-flap", 0.3, 2.0, {"times": 2, "politely": True}, "step1")
    [band] = runner("moleculer")(schedule_of("moleculer", step)).bands
    assert band["end_s"] - band["begin_s"] == pytest.approx(2.0)


def test_a_partition_lets_nothing_through_until_it_is_healed() -> None:
    case = runner("rabbitmq-stream")(schedule_of("rabbitmq-stream", Step("partition", 0.5, 2.0, {}, "step1")))
    [band] = case.bands
    handed = [row.t for row in case.rows if row.what == "out"]
    assert not [t for t in handed if band["begin_s"] < t < band["end_s"]]
    assert [t for t in handed if t >= band["end_s"]]


def test_a_crash_that_forgets_is_no_fault_of_the_client() -> None:
    step = Step("crash-forget", 1.0, 0.5, {"how": "rst"}, "step1")
    case = runner("rabbitmq-stream")(schedule_of("rabbitmq-stream", step))
    assert case.notes.forgets
    assert verdict_on(case).word is Word.PASS


def test_attempts_to_reach_a_broker_that_is_down_leave_no_trace() -> None:
    setting = Setting("moleculer", Realism.ENVIRONMENT, (SCRIPT,))
    drawn = (draw(setting, str(seed)) for seed in range(10_000))
    crashes = (each for each in drawn if "crash" in [step.kind for step in each.steps])
    case = next(case for case in map(runner("moleculer"), crashes) if case.notes.unreachable)
    assert verdict_on(case).word is not Word.FAIL


def test_healing_ends_what_goes_on_longer_than_the_safety_phase() -> None:
    case = runner("narconi")(schedule_of("narconi", Step("crash", 3.0, 500.0, {"how": "fin"}, "step1")))
    [band] = case.bands
    calm = case.mark("calm")
    assert calm is not None
    assert band["end_s"] <= calm.t
    assert verdict_on(case).word is Word.PASS


def test_consumers_drain_what_is_there() -> None:
    case = runner("rabbitmq-stream")(schedule_of("rabbitmq-stream"))
    assert case.log is not None
    drains = [op for op in case.log.ops if op.f == "drain"]
    assert drains
    acked = {
        op.value for op in case.log.ops if op.f == "publish" and op.outcome == "ok" and op.seq < drains[0].seq
    }
    got = {op.value for op in case.log.ops if op.f == "deliver" and op.key == "S1"}
    sent = {op.value for op in case.log.ops if op.f == "publish" and op.key == "S1"}
    assert acked & sent <= got


def test_an_act_tells_what_it_did() -> None:
    args = {"match": {"direction": "out", "role": "confirm", "nth": 1, "scope": "run"}, "act": "contradict"}
    case = runner("rabbitmq-stream")(schedule_of("rabbitmq-stream", Step("act", 0.0, 3.0, args, "step1")))
    [band] = case.bands
    assert band["did"]
    assert band["did"][0].startswith("contradict ")
    assert not case.is_truthful
    assert verdict_on(case).word is Word.PASS


def test_what_the_fault_takes_away_is_missed_where_the_contract_says_so() -> None:
    go = runner("rabbitmq-stream", "crc-signed")
    verdict = verdict_on(go(schedule_of("rabbitmq-stream")))
    assert verdict.word is Word.FAIL
    assert "lost-write" in verdict.names
    assert "delivers-what-came" in verdict.names


def test_without_an_op_that_ended_well_there_is_no_verdict() -> None:
    schedule = schedule_of("rabbitmq-stream")
    case = ChaosCase(schedule, [])
    verdict = verdict_on(case)
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.reason


@pytest.mark.parametrize(("lag_s", "is_starved"), [(2.0, False), (0.0, True)])
def test_a_machine_without_time_blames_nobody(lag_s: float, is_starved: bool) -> None:
    case = runner("rabbitmq-stream", "crc-signed")(schedule_of("rabbitmq-stream"))
    case.lag_s, case.is_starved = lag_s, is_starved
    assert verdict_on(case).word is Word.INCONCLUSIVE


def test_the_names_of_effects_are_told_apart_from_nemeses() -> None:
    for protocol in PROTOCOLS:
        names = available(Setting(protocol, Realism.ILLEGAL), material_of(protocol))
        assert len(names) == len(set(names))


class Fails(Nemesis):
    """Cannot do what it is for."""

    name = "fails"
    about = "Nothing."

    def __init__(self, how: str) -> None:
        self.how = how

    async def begun(self, context: ChaosContext, step: Step) -> None:
        if self.how == "begun":
            raise LookupError("no such node")

    def heal(self, context: ChaosContext, step: Step) -> None:
        if self.how == "heal":
            raise LookupError("no such node")


@pytest.mark.parametrize("how", ["begun", "heal"])
@pytest.mark.parametrize("for_s", [0.1, 90.0])
def test_a_nemesis_that_fails_is_no_defect_of_the_client(
    how: str, for_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    material = material_of("pzq")
    monkeypatch.setitem(material.nemeses, "fails", Fails(how))
    step = Step("fails", 0.1, for_s, {}, "step1")
    verdict = verdict_on(runner("pzq")(Schedule("pzq", "publish", SMALL, (step,), seconds=1.0)))
    assert verdict.word is Word.HARNESS_ERROR
    assert "no such node" in verdict.reason
