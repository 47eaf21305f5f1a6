"""A schedule from a seed: the same seed and version give the same schedule, bit for bit.

Every run has a mix of its own: each effect and each nemesis is switched off with a chance of one half. A mix
of everything hides defects that one kind of fault alone would show, because the others get in its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from conformance.search.random.acts import REALISM
from conformance.search.random.material import ChaosProtocol, material_of
from conformance.search.random.nemesis import Nemesis
from conformance.search.random.schedule import Schedule
from conformance.search.random.script import NEMESES, SCRIPT_S, SCRIPT_SECONDS
from conformance.search.random.toxics import TOXIC
from conformance.search.random.workload import SCRIPT
from conformance.search.random.workloads import find_workload
from fakebrokers.faults import Realism
from fakebrokers.faults.drawing import BY_NAME, TEMPLATES, draw_fault, draw_match, places_of
from fakebrokers.faults.steps import ACT, FAULT, Step
from fakebrokers.protocol import find_protocol

STEPS = (0, 1, 1, 2, 3, 4, 6)
LENGTHS_S = (0.2, 1.0, 3.0, 8.0)
SECONDS = (5.0, 10.0, 20.0, 40.0)
LIVE_SECONDS = (2.0, 4.0, 6.0)  #: where time is real
TRIES = 5


class Setting(NamedTuple):
    """What schedules are drawn for.

    Attributes:
        workloads: To draw from; empty: all that the protocol has.
        nemeses: To draw from, effects by their names too; empty: all.
        is_process: Whether the client is a child process, in real time.
        is_remote: Whether it speaks to a real server, through a proxy.
        is_toxic: Whether it is a Toxiproxy that disturbs: then there are its toxics, and nothing else.
    """

    protocol: str
    realism: Realism = Realism.ENVIRONMENT
    workloads: tuple[str, ...] = ()
    nemeses: tuple[str, ...] = ()
    is_process: bool = False
    is_remote: bool = False
    is_toxic: bool = False


def draw(setting: Setting, seed: str) -> Schedule:
    """The schedule of a seed: a number, or any text."""
    material = material_of(setting.protocol)
    random = Random(f"{setting.protocol}/{seed}")
    kind = random.choice(setting.workloads or material.actions.kinds)
    if setting.is_remote and kind == "consume":
        kind = "mixed"  # only the client itself can publish what it consumes
    workload = find_workload(kind)
    params = workload.draw(random, material.actions)
    if kind != SCRIPT:
        params |= material.actions.draw(random, kind)
    lengths = LIVE_SECONDS if setting.is_process else SCRIPT_SECONDS if kind == SCRIPT else SECONDS
    seconds = random.choice(lengths)
    there = available(setting, material, kind) if workload.bears(material.actions, params) else []
    mix = [name for name in there if random.random() < 0.5]
    steps = []
    for number in range(random.choice(STEPS) if mix else 0):
        step = _step(setting, material, mix, kind, params, seconds, number, random)
        steps += [] if step is None else [step]
    return Schedule(
        protocol=setting.protocol,
        workload=kind,
        params=params,
        steps=tuple(sorted(steps, key=lambda step: step.at_s)),
        seconds=seconds,
        seed=seed,
        realism=str(setting.realism),
        mix=tuple(mix),
    )


def available(setting: Setting, material: ChaosProtocol, kind: str = "") -> list[str]:
    """The effects and nemeses that a schedule of a workload may have, in a stable order."""
    if setting.is_toxic:
        return [f"nemesis {name}" for name in TOXIC if not setting.nemeses or name in setting.nemeses]
    order = list(Realism)
    bearable = order[: order.index(setting.realism) + 1]
    without = set(material.actions.without)
    if setting.is_process:
        without.add("stall")  # what is read late looks as if written late
    names = [one.name for one in TEMPLATES if one.realism in bearable and one.name not in without]
    if not setting.is_remote:  # a real server's frames are not ours to make
        names += [f"act {name}" for name, realism in REALISM.items() if realism in bearable]
    names += [
        f"nemesis {one.name}"
        for one in material.nemeses.values()
        if one.realism in bearable and _suits(one, setting, kind)
    ]
    wanted = setting.nemeses
    return [name for name in names if not wanted or name.rpartition(" ")[2] in wanted]


def _suits(nemesis: Nemesis, setting: Setting, kind: str) -> bool:
    """Whether a workload of that kind can have it there."""
    if (nemesis.needs_process and not setting.is_process) or (nemesis.needs_broker and setting.is_remote):
        return False
    return kind != SCRIPT or nemesis.name in NEMESES


def _step(
    setting: Setting,
    material: ChaosProtocol,
    mix: Sequence[str],
    kind: str,
    params: dict[str, object],
    seconds: float,
    number: int,
    random: Random,
) -> Step | None:
    name = f"step{number + 1}"
    protocol = find_protocol(setting.protocol)
    there = places_of(protocol, kind, material.actions.also)
    at_s = round(random.uniform(0, seconds * 0.8), 2)
    for_s = min(random.choice(LENGTHS_S), seconds)
    if kind == SCRIPT:
        at_s, for_s = random.choice((0.0, at_s)), max(for_s, random.choice((0.0, SCRIPT_S)))
    for _ in range(TRIES):
        group, _, own = random.choice(mix).rpartition(" ")
        if group == "nemesis":
            nemeses = TOXIC if setting.is_toxic else material.nemeses
            args = nemeses[own].draw(random, params, protocol.wires[0])
            if args is not None:
                return Step(own, at_s, for_s, args, name)
        elif group == "act":
            match = {**draw_match(there, random, rare=True), "scope": "run"}
            return Step(ACT, at_s, for_s, {"match": match, "act": own}, name)
        else:
            row = draw_fault(BY_NAME[own], protocol, there, random)
            if row is not None:
                return Step(FAULT, at_s, for_s, row, name)
    return None
