"""What a workload works with: the context of the sweep, and the schedule that disturbs it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from conformance.clients.adapter.base import Adapter
from conformance.run.bases import RETRIES, ScriptContext
from conformance.run.pace import Pace
from conformance.run.trace import Trace
from conformance.search.random.schedule import Schedule
from conformance.search.random.step_faults import rows_of
from fakebrokers.errors import PlanError
from fakebrokers.faults.disturbances import Row
from fakebrokers.faults.plan import Plan
from fakebrokers.faults.steps import Step

if TYPE_CHECKING:
    from conformance.clients.adapter.result import Result


async def _nothing() -> None:
    """There is nothing to make."""


class Band(dict[str, Any]):
    """A step that took place: ``name kind about begin_s end_s``, and what acts ``did``."""


class Disturbing(Protocol):
    """What takes place in a step; see `nemesis.Nemesis`."""

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        """The step as rows of a fault plan."""

    async def begun(self, context: ChaosContext, step: Step) -> None:
        """The rows are added."""

    def heal(self, context: ChaosContext, step: Step) -> None:
        """Undo what `begun` did."""


class ChaosContext(ScriptContext):
    """One run.

    Args:
        nemeses: By name, those that the schedule may have.
        pace: How long its pauses last.
        suffix: Of all targets at a real server, where other runs leave theirs; "" at a fake.

    Attributes:
        random: Of the workload.
        remake: Makes the workload's targets again at a broker that has lost all it had.
        toxics: The proxy of a Toxiproxy that the nemeses act on, where there is one; see `toxics.Toxics`.
        memo: What the actions of a protocol remember of this run.
        bands: The steps that took place, with the times on the loop's clock at which they began and ended.
        trouble: What has kept a step from taking place, which is no client's fault; "" if nothing has.
    """

    def __init__(
        self,
        broker: Any,
        adapter: Adapter,
        trace: Trace,
        schedule: Schedule,
        nemeses: Mapping[str, Disturbing],
        pace: Pace,
        *,
        suffix: str = "",
    ) -> None:
        super().__init__(broker, adapter, trace, pace=pace)
        self.suffix = suffix
        self.toxics: Any = None
        self.schedule = schedule
        self.random = Random(f"{schedule.seed}/workload")
        self.bands: list[Band] = []
        self.trouble = ""
        self.memo: dict[Any, Any] = {}
        self._nemeses = nemeses
        self._steps: list[asyncio.Task[None]] = []
        self._is_healed = False
        self._standing: dict[str, tuple[Step, Band]] = {}
        self._added: dict[str, list[str]] = {}
        self.remake: Callable[[], Awaitable[None]] = _nothing

    @property
    def is_remote(self) -> bool:
        """Whether `broker` is a proxy in front of a real server: it can be disturbed, and asked nothing."""
        return bool(self.suffix)

    @property
    def nodes(self) -> int:
        """How many there are to stop; a proxy is one."""
        return 1 if self.is_remote else int(self.schedule.params.get("nodes", 1))

    @property
    def is_real_time(self) -> bool:
        """Whether pauses are cut short."""
        return self._pace.longest_s < math.inf

    def own(self, target: str) -> str:
        """The name of a target in this run."""
        return target + self.suffix

    # what disturbs

    def disturb(self) -> None:
        """The safety phase begins: the steps of the schedule take place at their times from here on."""
        self.broker.faults.load(Plan(seed=self.schedule.plan_seed))
        self.broker.engine.injector.timetable.observer = self._observe
        for step in self.schedule.steps:
            self._steps.append(asyncio.create_task(self._take(step)))

    def _observe(self, name: str, begins: bool) -> None:
        """A fault that has a time of its own begins, before it acts, or is over."""
        self.killed.update(self.broker.engine.connections)

    async def _take(self, step: Step) -> None:
        await asyncio.sleep(step.at_s)
        band = Band(name=step.name, kind=step.kind, about=str(step), begin_s=self.now, end_s=None)
        self.bands.append(band)
        did: list[str] = []
        band["did"] = did
        nemesis = self._nemeses.get(step.kind)
        self.killed.update(self.broker.engine.connections)
        self._standing[step.name] = step, band
        disturbs = nemesis.rows if nemesis is not None else None
        rows = rows_of(self.schedule.protocol, step, disturbs, self.nodes, did)
        ends_s = self.now + max((step.for_s, *(row["match"].get("until_s", 0.0) for row in rows)))
        self._added[step.name] = names = []
        try:
            for row in rows:
                names.append(self.broker.faults.add(row))
            if nemesis is not None:
                await nemesis.begun(self, step)
            await asyncio.sleep(max(0.0, ends_s - self.now))
        finally:
            self._undo(step.name)

    def _undo(self, name: str) -> None:
        """A step is over: once, whether its time is, or that of all of them."""
        if name not in self._standing:
            return
        step, band = self._standing.pop(name)
        band["end_s"] = self.now
        for each in self._added.pop(name, ()):
            with suppress(PlanError):  # it may be over by now, or a script may have cleared them all
                self.broker.faults.remove(each)
        if step.kind in self._nemeses:
            self._nemeses[step.kind].heal(self, step)
        self.killed.update(self.broker.engine.connections)

    async def heal(self) -> None:
        """The end of the safety phase: nothing disturbs the client from here on, and the broker works."""
        if not self._is_healed:
            self._end_steps()
            self.mark("calm")
        outcomes = await asyncio.gather(*self._steps, return_exceptions=True)
        for step, outcome in zip(self.schedule.steps, outcomes, strict=True):
            if isinstance(outcome, Exception):
                self.trouble = self.trouble or f"{step}: {outcome!r}"

    def calm(self) -> None:
        """The same, as the scripts of the sweep say it."""
        if not self._is_healed:
            self._end_steps()
        super().calm()

    def _end_steps(self) -> None:
        self._is_healed = True
        for task in self._steps:
            task.cancel()
        for name, (step, _) in list(self._standing.items()):
            try:
                self._undo(name)
            except Exception as error:
                self.trouble = self.trouble or f"the end of {step}: {error!r}"
        self.broker.faults.clear()
        self.broker.restart()

    async def settle_all(self, sub: str) -> int:
        """Acknowledge what a subscription has got and the application has not settled yet. How many?"""
        done = self.memo.setdefault(("settled", sub), set())
        before = len(done)
        for event in list(self.adapter.events):
            if event.event == "message" and event["sub"] == sub and event.n not in done:
                done.add(event.n)
                await self.op("settle", sub=sub, ref=event["ref"], how="ack")
        return len(done) - before

    # what a session needs

    async def join(self, session: str, timeout: float = 5.0, **options: Any) -> bool:
        """Connect a session, and try again while that fails. Returns whether it has one.

        A session that has failed is tried again once nothing disturbs it: see `Workload.recover`.
        """
        result: Result | None = None
        own = self.endpoint if isinstance(self.endpoint, dict) else [self.endpoint]
        options = self.notes.order_reconnect(options, can=self.adapter.hello.can("auto_reconnect"))
        for attempt in range(RETRIES):
            if attempt:
                await self.sleep(2.0)
            result = await self.op("connect", timeout, session=session, endpoints=own, options=options)
            if result.ok:
                return True
        return False
