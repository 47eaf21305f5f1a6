"""Schedules from seeds: the same one gives the same schedule, and no worse than was allowed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conformance.search.random.acts import REALISM
from conformance.search.random.draw import Setting, available, draw
from conformance.search.random.material import material_of
from conformance.search.random.schedule import from_json, number_of, to_json
from fakebrokers.core.frames import Role
from fakebrokers.faults import Realism
from fakebrokers.faults.drawing import BY_NAME, places
from fakebrokers.faults.plan import fault_from
from fakebrokers.faults.steps import ACT, FAULT
from fakebrokers.protocol import find_protocol, protocol_names

ORDER = list(Realism)
PROTOCOLS = protocol_names()[:5]  #: other tests may register more


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_seed_gives_one_schedule_and_another_seed_another(protocol: str) -> None:
    setting = Setting(protocol)
    texts = [to_json(draw(setting, str(seed))) for seed in range(20)]
    assert texts == [to_json(draw(setting, str(seed))) for seed in range(20)]
    assert len(set(texts)) == 20


def test_a_schedule_does_not_depend_on_the_process() -> None:
    """The seeds of hashes differ from one process to the next."""
    code = (
        "from conformance.search.random.draw import Setting, draw; "
        "from conformance.search.random.schedule import to_json; "
        "print(to_json(draw(Setting('narconi'), '7')))"
    )
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    assert said.stdout.strip() == to_json(draw(Setting("narconi"), "7"))


def test_a_seed_is_a_number_or_any_text() -> None:
    assert number_of("42") == 42
    assert number_of("3f2a91c") == number_of("3f2a91c") != number_of("3f2a91d")
    assert 0 <= number_of("3f2a91c" * 9) < 1 << 63
    assert draw(Setting("pzq"), "3f2a91c").steps != draw(Setting("pzq"), "3f2a91d").steps


def test_all_that_was_drawn_stands_in_the_schedule_and_in_its_words() -> None:
    schedule = next(one for one in (draw(Setting("rabbitmq-stream"), str(n)) for n in range(99)) if one.steps)
    assert from_json(to_json(schedule)) == schedule
    for name, value in schedule.params.items():
        assert f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" in schedule.about
    for step in schedule.steps:
        assert str(step) in schedule.about


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("realism", Realism)
def test_nothing_worse_than_the_wanted_realism_is_drawn(protocol: str, realism: Realism) -> None:
    nemeses = material_of(protocol).nemeses
    drawn = [step for seed in range(60) for step in draw(Setting(protocol, realism), str(seed)).steps]
    assert drawn
    for step in drawn:
        if step.kind == FAULT:
            worst = fault_from(step.args, "step", find_protocol(protocol)).effective_realism
            template = BY_NAME.get(_first_effect(step.args)["type"])
            worst = template.realism if template is not None else worst
        else:
            worst = REALISM[step.args["act"]] if step.kind == ACT else nemeses[step.kind].realism
        assert ORDER.index(worst) <= ORDER.index(realism), step


def _first_effect(row: dict[str, object]) -> dict[str, str]:
    effects = row["effect"]
    return effects[0] if isinstance(effects, list) else effects  # type: ignore[return-value]


def test_each_run_has_half_of_the_effects() -> None:
    setting = Setting("blazingmq", Realism.ILLEGAL)
    there = available(setting, material_of("blazingmq"))
    shares = [len(draw(setting, str(seed)).mix) / len(there) for seed in range(50)]
    assert 0.4 < sum(shares) / len(shares) < 0.6
    assert len({draw(setting, str(seed)).mix for seed in range(50)}) == 50


def test_steps_come_from_the_mix_alone() -> None:
    for seed in range(50):
        schedule = draw(Setting("moleculer", Realism.ILLEGAL), str(seed))
        mix = {name.rpartition(" ")[2] for name in schedule.mix}
        for step in schedule.steps:
            own = {FAULT: lambda args: _first_effect(args)["type"], ACT: lambda args: args["act"]}
            assert own.get(step.kind, lambda _, kind=step.kind: kind)(step.args) in mix


def test_only_wanted_nemeses_and_workloads_are_drawn() -> None:
    setting = Setting("rabbitmq-stream", workloads=("publish",), nemeses=("partition", "rst"))
    kinds = set()
    for seed in range(60):
        schedule = draw(setting, str(seed))
        assert schedule.workload == "publish"
        for step in schedule.steps:
            kinds.add(_first_effect(step.args)["type"] if step.kind == FAULT else step.kind)
    assert kinds == {"partition", "rst"}


def test_the_process_is_paused_only_where_there_is_one() -> None:
    material = material_of("narconi")
    assert "nemesis pause" not in available(Setting("narconi"), material)
    assert "nemesis pause" in available(Setting("narconi", is_process=True), material)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_faults_are_drawn_where_the_protocol_has_frames(protocol: str) -> None:
    there = places(find_protocol(protocol), material_of(protocol).actions.also)
    assert ("in", Role.DELIVER) not in there
    assert ("out", Role.DELIVER) in there


def test_no_fault_is_drawn_at_frames_of_the_side_that_does_not_send_them() -> None:
    there = places(find_protocol("redis"))
    assert ("in", Role.HANDSHAKE) in there
    assert ("out", Role.HANDSHAKE) not in there
