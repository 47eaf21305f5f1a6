"""Scenarios on a stock client in this process, on virtual time: what is as expected needs no process."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, redirect_stderr
from typing import Any

import msgspec

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.adapter.host import ClientHost
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.messages import Hello
from conformance.coverage.meter import CoverageMeter, row
from conformance.known.defects import KnownDefects
from conformance.results import ON_VIRTUAL_TIME, Verdict
from conformance.run import simulated
from conformance.run.simulated import NeedsProcess
from conformance.run.stuck import Stuck, run_or_stuck
from conformance.suite.expectations import foresee, news
from conformance.suite.judge import Judgement, judge, unfit
from conformance.suite.scenario import Key, Scenario
from fakebrokers.core import virtual
from fakebrokers.journal import RunJournal
from fakebrokers.server import FakeServer
from fakebrokers.simulation import SimulationLoop

STUCK_S = 5.0  #: of the processor, in which no virtual time passes: such a scenario is left to a process

OpenRun = Callable[[Scenario], RunJournal]


class HereJudge:
    """Judges one stock client in this process. Blocks; main thread only.

    Args:
        client: Its adapter class.
        seed: Of the fakes.
        known: What is known of it.
        meter: Measures what of it is executed.

    Attributes:
        left: Scenarios that need a process, each with the reason.
    """

    def __init__(
        self,
        client: type[AdapterBase],
        seed: int,
        known: KnownDefects,
        meter: CoverageMeter | None = None,
    ) -> None:
        self._client = client
        self._seed = seed
        self._known = known
        self._meter = meter
        self._clock: Callable[[], float] = lambda: 0.0  #: of the loop that runs
        self.left: dict[Key, str] = {}

    async def _greeted(self, protocol: str) -> Hello:
        adapter = InProcessAdapter(self._client, protocol)
        hello = await adapter.start()
        await adapter.kill()
        return hello

    def hello(self, protocol: str) -> Hello:
        """What the client says about itself."""
        return virtual.run(self._greeted(protocol))

    def judged(self, items: Iterable[Scenario], open_run: OpenRun | None = None) -> Iterator[Judgement]:
        """The judgements that stand; all other scenarios are for a process.

        Args:
            open_run: Opens the journal on disk for a run; None writes none.
        """
        for item in items:
            note = None if open_run is None else open_run(item)
            judgement = self._try(item, note)
            if judgement is not None:
                yield judgement
            elif note is not None:  # the process that judges it writes one of its own
                note.discard()

    def _try(self, item: Scenario, note: RunJournal | None) -> Judgement | None:
        why = "it is about the process" if item.process or item.alone else self._why_sockets(item)
        found: list[Judgement] = []
        if not why:
            try:
                with redirect_stderr(io.StringIO()), self._measured(item):
                    self._clock = lambda: 0.0
                    work = self._run(item, note, found)
                    run_or_stuck(work, STUCK_S, run=simulated.run, reached=self._reached)
            except (NeedsProcess, Stuck, AdapterFailed) as error:
                why = str(error)
        if not why and not found:
            return None  # it is not for this client: that needs no run
        why = why or self._doubt(found[0])
        if why:
            self.left[item.key] = why
            return None
        return msgspec.structs.replace(found[0], how=ON_VIRTUAL_TIME)

    def _reached(self) -> float:
        return self._clock()

    def _measured(self, item: Scenario) -> AbstractContextManager[None]:
        return nullcontext() if self._meter is None else self._meter.doing(row(item.id))

    @staticmethod
    def _why_sockets(item: Scenario) -> str:
        return "it needs sockets" if item.sockets or item.server.get("proxied") else ""

    async def _run(self, item: Scenario, note: RunJournal | None, found: list[Judgement]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulationLoop)
        self._clock = loop.time
        loop.set_exception_handler(lambda *_: None)  # a process only writes such things to stderr
        host = ClientHost(loop)
        adapter = InProcessAdapter(self._client, item.protocol, host)
        try:
            hello: Hello = await adapter.start()
            if unfit(item, hello) is None:
                found.append(await judge(item, adapter, self._fake, note=note))
        finally:
            await adapter.kill()
            host.bury()

    def _fake(self, item: Scenario) -> FakeServer:
        options: dict[str, Any] = {"seed": self._seed, "exact": True, **item.server}
        return simulated.fake_for(item.protocol, in_memory=True, **options)

    def _doubt(self, judgement: Judgement) -> str:
        """Why a process has to say so, too; "" where it is as expected."""
        if judgement.verdict in (Verdict.HARNESS_ERROR, Verdict.UNSUPPORTED, Verdict.PROFILE):
            return judgement.reason or str(judgement.verdict)
        foreseen = foresee(self._known, judgement)
        if foreseen is False or (foreseen is None and judgement.verdict is not Verdict.PASS):
            return f"{judgement.verdict} {ON_VIRTUAL_TIME}: {judgement.reason}"
        broken = news(self._known, judgement)
        return f"{ON_VIRTUAL_TIME}: {broken[0].name}: {broken[0].text}" if broken else ""
