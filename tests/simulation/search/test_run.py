"""One run of a world under a schedule: what is disturbed, how it is healed, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fakebrokers.errors import PlanError
from fakebrokers.faults.steps import FAULT, Step
from fakebrokers.simulation.search.run import Outcome, Run
from fakebrokers.simulation.search.schedule import Schedule
from fakebrokers.simulation.search.world import World
from tests.simulation.search import worlds
from tests.simulation.search.worlds import put

Main = Callable[[Any], Coroutine[Any, Any, None]]


def run(main: Main, *steps: Step, checks: tuple[Any, ...] = (), seconds: float = 600.0) -> Outcome:
    return Run(World(main, checks), Schedule(7, seconds, steps=steps)).go(surveys=True)


def answers(*steps: Step, times: int = 4, every_s: float = 10.0, **options: Any) -> list[bool]:
    """Whether the broker answers, asked from the host ``shop`` at 0, 10, 20 and 30 s."""
    got: list[bool] = []

    async def shop(host: str) -> None:
        for number in range(times):
            await asyncio.sleep(number * every_s - asyncio.get_running_loop().time())
            got.append(await put(host, "a"))

    async def main(simulation: Any) -> None:
        broker = simulation.narconi(port=3000, **options)
        await simulation.start(shop, broker.host).wait()
        await simulation.healed()
        assert await put(broker.host, "b")

    outcome = run(main, *steps)
    assert outcome.failure is None, outcome.failure
    return got


def test_what_nothing_disturbs_passes() -> None:
    outcome = run(worlds.fine)
    assert (outcome.failure, outcome.seconds) == (None, 180.0)
    assert outcome.survey is not None
    assert (outcome.survey.applications, outcome.survey.lines) == (["patient"], [("patient", "narconi")])
    assert outcome.survey.ended_s == 180.0
    assert outcome.survey.moments == [0.0, 60.0, 120.0]
    spoken = {(each.direction, each.role): each.count for each in outcome.survey.brokers["narconi"].spoken}
    assert spoken == {("in", "open"): 3, ("out", "response"): 3}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (Step("crash", 5, 10, {"how": "rst"}, "x", "narconi"), [True, False, True, True]),
        (Step("refuse", 5, 20, {}, "x", "narconi"), [True, False, False, True]),
        (Step("black-hole", 5, 10, {}, "x", "narconi"), [True, False, True, True]),
        (Step("partition", 5, 10, {}, "x", "shop|narconi"), [True, False, True, True]),
        (Step("latency", 5, 10, {"seconds": 4.0}, "x", "shop|narconi"), [True, False, True, True]),
        (
            Step(FAULT, 5, 10, {"match": {"direction": "out"}, "effect": {"type": "drop"}}, "x", "narconi"),
            [True, False, True, True],
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Step) else "",
)
def test_a_step_begins_and_ends_in_time(step: Step, expected: list[bool]) -> None:
    assert answers(step) == expected


def test_two_steps_that_overlap_are_each_healed_in_their_time() -> None:
    crash = Step("crash", 5, 10, {"how": "fin"}, "one", "narconi")
    refuse = Step("refuse", 8, 20, {}, "other", "narconi")
    assert answers(crash, refuse) == [True, False, False, True]


def test_a_reset_ends_connections() -> None:
    ended: list[float] = []

    async def shop(host: str) -> None:
        reader, writer = await asyncio.open_connection(host, 3000)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        ended.append(asyncio.get_running_loop().time())
        writer.close()

    async def main(simulation: Any) -> None:
        broker = simulation.narconi(port=3000)
        await simulation.start(shop, broker.host).wait()

    assert run(main, Step("reset", 5, 1, {"how": "rst"}, "x", "narconi")).failure is None
    assert ended == [5.0]


def test_an_application_is_killed_and_started_again_and_waited_for() -> None:
    starts: list[float] = []

    async def shop() -> str:
        starts.append(asyncio.get_running_loop().time())
        await asyncio.sleep(20)
        return "closed"

    async def main(simulation: Any) -> None:
        app = simulation.start(shop)
        assert await app.wait() == "closed"
        assert simulation.now == 35
        await simulation.healed()

    late = Step("kill", 40, 1, {}, "late", "shop")
    outcome = run(main, Step("kill", 5, 10, {}, "x", "shop"), late)
    assert (outcome.failure, starts, outcome.seconds) == (None, [0.0, 15.0], 41.0)


@pytest.mark.parametrize("node", [2, 3])
def test_a_node_stops_and_starts_again(node: int) -> None:
    up: list[list[bool]] = []

    async def main(simulation: Any) -> None:
        broker = simulation.rabbitmq_stream(nodes=2)
        for _ in range(3):
            up.append([each.up for each in broker.nodes])
            await asyncio.sleep(10)

    assert run(main, Step("node", 5, 10, {"node": node}, "x", "rabbitmq-stream")).failure is None
    assert up == [[True, True], [True, node != 2], [True, True]]


def test_what_is_not_there_cannot_be_disturbed() -> None:
    missing = [Step(kind, 0, 1, {}, kind, "mill|fair") for kind in ("partition", "kill", "refuse")]
    world = Run(World(worlds.fine), Schedule(0, 9.0, steps=tuple(missing)))
    outcome = world.go()
    assert outcome.failure is None
    assert sum("finds no mill|fair that runs" in line for line in world.story(outcome)) == 3


def test_a_fault_that_the_broker_cannot_have_is_refused() -> None:
    row = {"match": {"role": "confirm"}, "effect": {"type": "explode"}}
    with pytest.raises(PlanError, match="explode"):
        run(worlds.fine, Step(FAULT, 0, 1, row, "x", "narconi"))


LOST = Step(
    FAULT, 50, 20, {"match": {"direction": "in", "role": "open"}, "effect": {"type": "rst"}}, "x", "narconi"
)
BEFORE = Step("refuse", 50, 20, {}, "x", "narconi")


def test_what_main_raises_is_the_failure_and_where_is_its_name() -> None:
    outcome = run(worlds.careless, BEFORE)
    assert outcome.failure is not None
    assert outcome.failure.name.startswith("AssertionError at tests/simulation/search/worlds.py:")
    assert "assert" in outcome.failure.text
    assert run(worlds.fine, BEFORE).failure is None
    assert run(worlds.fine, LOST).failure is None


def test_a_check_is_asked_when_all_is_healed() -> None:
    assert run(worlds.builds, checks=(worlds.has_all,)).failure is None
    outcome = run(worlds.builds, BEFORE, checks=(worlds.has_all,))
    assert outcome.failure is not None
    assert outcome.seconds == 660
    late = Step("crash", 590, 300, {"how": "rst"}, "late", "narconi")
    assert run(worlds.builds, late, checks=(worlds.has_all,)).seconds == 950


def test_an_error_in_an_application_is_a_failure_whoever_waits_for_something_else() -> None:
    async def fails() -> None:
        await asyncio.sleep(1)
        raise KeyError("tea")

    async def careless(simulation: Any) -> None:
        simulation.start(fails)
        await asyncio.sleep(5)

    async def waits(simulation: Any) -> None:
        simulation.start(fails)
        await asyncio.get_running_loop().create_future()

    for main in (careless, waits):
        outcome = run(main)
        assert outcome.failure is not None
        assert outcome.failure.name.startswith("KeyError at tests/")


def test_who_waits_for_ever_is_named() -> None:
    drop = Step(FAULT, 0, 9, {"match": {"direction": "out"}, "effect": {"type": "drop"}}, "x", "narconi")
    outcome = run(worlds.waits_for_ever, drop)
    assert outcome.failure is not None
    assert outcome.failure.name == "Deadlock"
    line = next(line for line in outcome.failure.text.splitlines() if "test: test at" in line)
    assert "worlds.py:" in line


def test_what_goes_on_for_ever_ends() -> None:
    async def main(simulation: Any) -> None:
        while True:
            await asyncio.sleep(60)

    outcome = run(main, seconds=60)
    assert outcome.failure is not None
    assert "3660 virtual seconds have passed" in outcome.failure.text


def test_the_same_schedule_gives_the_same_bytes_and_another_others() -> None:
    assert run(worlds.fine, LOST) == run(worlds.fine, LOST)
    assert run(worlds.fine, LOST).digest != run(worlds.fine).digest


def test_the_story_has_frames_faults_applications_and_the_end() -> None:
    world = Run(World(worlds.careless), Schedule(0, 600.0, steps=(BEFORE,)))
    story = [line.split(None, 1)[1] for line in world.story(world.go())]
    parts = ["impatient          starts", "-> EnsureQueue", "x begins: 50 s to 70 s: refuse of narconi"]
    places = [story.index(next(line for line in story if each in line)) for each in (*parts, "x is over")]
    assert places == sorted(places)
    assert story[-1].startswith("AssertionError")
