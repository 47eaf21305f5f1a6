"""One run of a world under a schedule, and how it ended."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import linecache
import os
import sysconfig
import traceback
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec

from fakebrokers.errors import Deadlock, PlanError
from fakebrokers.simulation.repeats import Line, transcript
from fakebrokers.simulation.search.machine import Machine
from fakebrokers.simulation.search.outages import Outages
from fakebrokers.simulation.search.schedule import Failure, Schedule
from fakebrokers.simulation.search.survey import Survey, survey_of
from fakebrokers.simulation.simulation import Simulation
from fakebrokers.simulation.turns import LONGEST_S

if TYPE_CHECKING:
    from fakebrokers.simulation.search.world import World

#: Virtual seconds that a run may take when its faults are over.
LIVENESS_S = 3600.0
#: And those that pass then before something is checked from outside.
SETTLE_S = 60.0
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_OWN = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


class Outcome(msgspec.Struct):
    """How a run ended.

    Attributes:
        failure: None: all is well.
        differs: The first difference between two runs of this schedule, if there is one.
        digest: Of every byte that arrived anywhere, and when.
        seconds: Virtual time that passed.
        story: What happened, if that was asked for.
        output: What the application has printed, its end.
    """

    schedule: Schedule
    failure: Failure | None = None
    differs: str = ""
    digest: str = ""
    seconds: float = 0.0
    story: list[str] = []
    output: str = ""
    survey: Survey | None = None


class Run:
    """One run."""

    def __init__(self, world: World, schedule: Schedule) -> None:
        self._world = world
        self._schedule = schedule
        self._simulation = Simulation(
            schedule.seed,
            shuffle=schedule.shuffle,
            patch=True,
            longest_s=max(schedule.seconds, schedule.healed_s)
            + (LONGEST_S if world.is_machine else LIVENESS_S),
        )
        self._outages = Outages(self._simulation, schedule)
        self._rules: list[tuple[float, str]] = []

    def go(self, *, surveys: bool = False) -> Outcome:
        """Run it.

        Args:
            surveys: Whether to say who took part.

        Raises:
            PlanError: Its faults cannot be carried out.
        """
        simulation = self._simulation
        simulation.network.links.trace = []
        outcome = Outcome(self._schedule)
        try:
            with simulation:
                try:
                    main = self._world.main
                    if isinstance(main, Machine):
                        self._run_machine(main)
                    else:
                        simulation.run(self._work(main))
                finally:
                    outcome.seconds = simulation.now
                    outcome.survey = survey_of(simulation) if surveys else None
        except (KeyboardInterrupt, PlanError):
            raise
        except BaseException as error:
            outcome.failure = failure_of(self._cause_of(error))
        outcome.digest = self._digest()
        return outcome

    def _cause_of(self, error: BaseException) -> BaseException:
        """Who waits for an application that has failed waits for ever."""
        failures = [each.failure for each in self._simulation.applications if each.failure is not None]
        return failures[0] if failures and isinstance(error, Deadlock) else error

    def _run_machine(self, machine: Machine) -> None:
        """Rules run the simulation in pieces, and its faults take place meanwhile."""
        simulation = self._simulation
        context = simulation.network.outside.context
        simulation._outages = simulation.loop.create_task(self._outages.run(), context=context)
        began = [simulation.now]

        def say(text: str) -> None:
            self._rules.append((began[-1], text))
            began.append(simulation.now)

        machine.run(simulation, self._schedule.choices, say)

    async def _work(self, main: Callable[[Simulation], Any]) -> None:
        simulation = self._simulation
        outages = asyncio.ensure_future(self._outages.run())
        simulation._outages = outages
        await main(simulation)
        if self._world.checks:
            await asyncio.sleep(self._schedule.seconds - simulation.now)
        await outages
        if self._world.checks:
            await asyncio.sleep(SETTLE_S)
        for check in self._world.checks:
            found = check(simulation)
            if inspect.isawaitable(found):
                await found

    def transcript(self) -> list[Line]:
        """What happened, to be compared."""
        return transcript(self._simulation)

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for at, way, data in self._simulation.network.links.trace or ():
            digest.update(f"{at!r} {way} {len(data)} ".encode())
            digest.update(data)
        return digest.hexdigest()[:32]

    def story(self, outcome: Outcome) -> list[str]:
        """What happened, for people: frames, faults, applications, and the end."""
        rows = [(at, 0, "", text) for at, text in self._outages.lines]
        rows += [(at, 0, "rules", text) for at, text in self._rules]
        for name, broker in self._simulation.brokers.items():
            start = broker.journal.started_at
            rows += [(start + each.at, 1, name, " ".join(str(each).split()[1:])) for each in broker.journal]
        for application in self._simulation.applications:
            rows += [(at, 0, application.host.name, text) for at, text in application.history]
        if outcome.failure is not None:
            rows.append((outcome.seconds, 2, "", outcome.failure.text.splitlines()[0]))
        rows.sort(key=lambda row: row[:2])
        return [f"{at:12.4f}  {where:<18} {text}" for at, _, where, text in rows]


def failure_of(error: BaseException) -> Failure:
    """An error as what went wrong; of several the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    own = [(each, line) for each, line in traceback.walk_tb(error.__traceback__) if _is_own(each)]
    begin = error.__traceback__
    while begin is not None and own and begin.tb_frame is not own[0][0]:
        begin = begin.tb_next
    trace = "".join(traceback.format_exception(type(error), error, begin))
    kind, text = type(error).__name__, str(error)
    if not own:
        return Failure(kind, f"{kind}: {text}", trace)
    file, line = own[-1][0].f_code.co_filename, own[-1][1]
    where = f"{os.path.relpath(file)}:{line}"
    if not text:
        text = linecache.getline(file, line).strip()
    return Failure(f"{kind} at {where}", f"{kind}: {text}\n  at {where}", trace)


def _is_own(frame: FrameType) -> bool:
    """Whether it is a user's own code."""
    return not frame.f_code.co_filename.startswith((*_LIBRARIES, _OWN, "<"))
