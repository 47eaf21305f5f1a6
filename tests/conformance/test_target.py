"""Scenarios without faults say the same of a client on the real broker and on the fake of that version."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapters.registry import find
from conformance.known.defects import Part
from conformance.known.files import load
from conformance.suite.brokers import RealBroker, fake_for
from conformance.suite.load import all_scenarios
from conformance.suite.pool import AdapterPool
from conformance.suite.runner import Runner
from conformance.suite.scenario import Scenario
from tests.pages import TOP
from tests.real_rabbitmq import RealRabbit, real_rabbitmq, required

PROTOCOL = "rabbitmq-stream"
PROFILE = "3.10"  # the version that Debian 12 has

#: Where they may differ: on the real broker, on the fake, and why.
DIFFERENCES = {
    "RMQS-1.05": ("pass", "fail", "only the fake sees that rstream leaves its socket open after a refusal"),
    "RMQS-3.11": ("pass", "fail", "only a fake can lose publishes, and see with which ids they come again"),
    "RMQS-1.09": ("pass", "fail", "the same, unless Python's garbage collection closes it in time"),
}


def scenarios() -> list[Scenario]:
    return [item for item in all_scenarios() if item.protocol == PROTOCOL and item.target]


@pytest.fixture(scope="module")
def broker() -> Iterator[RealRabbit]:
    required()
    if not find("rstream").runnable:
        pytest.skip(f"missing: {'; '.join(find('rstream').missing)}")
    with real_rabbitmq() as running:
        yield running


def runner(make_broker: Any, **options: Any) -> Runner:
    client = find("rstream")
    harness = AdapterPool(lambda: ProcessAdapter(client.command, PROTOCOL, env=client.env))
    return Runner(harness, make_broker, **options)


async def judged(real: RealRabbit, items: list[Scenario], here_at_once: int) -> dict[str, tuple[str, str]]:
    """The verdicts on the real broker and on the fake: a failure that is known needs no idle machine."""
    known = load(TOP / "ci" / "known" / "rstream.toml", Part.SUITE)
    on_both = tuple(each for each in known.rows if each.id not in DIFFERENCES)
    there = runner(
        lambda _: RealBroker(real.host, real.port, {}),
        parallel=1,
        endpoint=lambda one: f"{one.host}:{one.port}",
        target=True,
        known=msgspec.structs.replace(known, rows=on_both),
    )
    here = runner(fake_for(profile=PROFILE), parallel=here_at_once, known=known)
    first, second = await asyncio.gather(there.run(items), here.run(items))
    return {
        one.scenario.id: (str(one.verdict), str(other.verdict))
        for one, other in zip(first, second, strict=True)
    }


async def compared(real: RealRabbit) -> dict[str, tuple[str, str]]:
    """The same; what differs without an explanation is judged again by itself, up to three times, for a busy
    machine makes clients late."""
    found = await judged(real, scenarios(), 3)
    for _ in range(3):
        strange = [item for item in scenarios() if not agreed(item.id, found[item.id])]
        if not strange:
            break
        found |= await judged(real, strange, 1)
    return found


def agreed(scenario_id: str, verdicts: tuple[str, str]) -> bool:
    """Whether they are the same, or known to differ."""
    return verdicts[0] == verdicts[1] or verdicts == DIFFERENCES.get(scenario_id, ())[:2]


def test_at_least_fifteen_scenarios_can_run_there() -> None:
    assert len(scenarios()) >= 15


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_verdicts_are_those_of_the_fake(broker: RealRabbit) -> None:
    found = asyncio.run(compared(broker))
    assert {key: both for key, both in found.items() if not agreed(key, both)} == {}
    assert {real for real, _ in found.values()} <= {"pass", "non-strict", "fail"}, "each was executed"
