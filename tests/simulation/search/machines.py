"""State machines of Hypothesis for searches."""

from __future__ import annotations

import asyncio
import os
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fakebrokers.simulation import Simulation
from tests.simulation.search import worlds


async def passed(seconds: float) -> None:
    """Wait so long, in virtual time."""
    await asyncio.sleep(seconds)


class Careless(RuleBasedStateMachine):
    """A shop that forgets what fails once."""

    main: ClassVar[Any] = staticmethod(worlds.impatient)

    def __init__(self, simulation: Simulation | None = None) -> None:
        super().__init__()
        self.simulation = simulation or Simulation(seed=7, patch=True)
        self.broker = self.simulation.narconi(port=3000)
        self.asked: set[str] = set()

    @rule(name=st.sampled_from("abcdef"))
    def ask(self, name: str) -> None:
        self.asked.add(name)
        self.simulation.start(self.main, self.broker.host, [name])

    @rule(seconds=st.integers(1, 300))
    def pass_time(self, seconds: int) -> None:
        self.simulation.run(passed(seconds))

    def teardown(self) -> None:
        with self.simulation as simulation:
            simulation.run(simulation.healed())
            simulation.run(passed(600))
            assert worlds.there(self.broker) == self.asked


class Fine(Careless):
    """One that does not."""

    main = staticmethod(worlds.patient)


class Full(Fine):
    """One that has room for two queues, whatever the line does."""

    @invariant()
    def has_room(self) -> None:
        assert len(self.asked) < 3


class Unsteady(Fine):
    """One that depends on what no seed governs."""

    def teardown(self) -> None:
        self.ask(f"of-{os.getpid()}")
        super().teardown()


class OnItsOwn(Fine):
    """One that takes no simulation."""

    def __init__(self) -> None:
        super().__init__()


TestFine = Fine.TestCase
TestFine.settings = settings(max_examples=5, deadline=None, database=None)
