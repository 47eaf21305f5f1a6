"""Base scripts of the sweep as workloads: their own fakes, their own ends, and nothing that outlives them."""

from __future__ import annotations

import pytest

from conformance.run.material import material_of
from conformance.search.random.draw import Setting, draw
from conformance.search.random.run import runner
from conformance.search.random.schedule import Schedule
from conformance.search.random.script import NEMESES
from conformance.search.random.verdict import Word, verdict_on
from conformance.search.random.workload import SCRIPT
from fakebrokers.faults import Realism
from fakebrokers.faults.steps import Step
from fakebrokers.protocol import protocol_names

PROTOCOLS = protocol_names()[:5]  #: other tests may register more


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_only_what_a_script_bears_is_drawn(protocol: str) -> None:
    bases, seen = material_of(protocol).bases, set()
    for seed in range(60):
        schedule = draw(Setting(protocol, Realism.ILLEGAL, (SCRIPT,)), str(seed))
        seen.add(schedule.params["script"])
        assert not bases[schedule.params["script"]].costly
        assert not schedule.steps or bases[schedule.params["script"]].injections
        assert {step.kind for step in schedule.steps} <= {"fault", "act", *NEMESES}
    assert len(seen) > 20


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_correct_client_bears_scripts_under_what_networks_do(protocol: str) -> None:
    go = runner(protocol)
    for seed in range(6):
        verdict = verdict_on(go(draw(Setting(protocol, workloads=(SCRIPT,)), f"script {seed}")))
        assert verdict.word is Word.PASS, (seed, verdict)


def test_a_script_ends_what_disturbs_it_and_then_itself() -> None:
    step = Step("partition", 0.0, 60.0, {}, "step1")
    schedule = Schedule("rabbitmq-stream", SCRIPT, {"script": "nodes", "nodes": 3}, (step,), seconds=1.0)
    case = runner("rabbitmq-stream")(schedule)
    [band] = case.bands
    calm = case.mark("calm")
    assert calm is not None
    assert band["end_s"] <= calm.t
    assert case.mark("closed") is not None
    assert verdict_on(case).word is Word.PASS, verdict_on(case)


def test_a_defect_that_no_mixture_shows_is_found() -> None:
    """No mixture publishes what is larger than the frames that were agreed."""
    setting = Setting("rabbitmq-stream", Realism.ILLEGAL, (SCRIPT,))
    go, correct = runner("rabbitmq-stream", "oversize-is-sent"), runner("rabbitmq-stream")
    failing = next(
        schedule
        for schedule in (draw(setting, str(seed)) for seed in range(150))
        if "frame-max" in verdict_on(go(schedule)).names
    )
    assert verdict_on(correct(failing)).word is Word.PASS
