"""Runs many scenarios on one client: in parallel, longest first, with second opinions on failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from conformance.adapter.base import Adapter, AdapterFailed
from conformance.results import Verdict
from conformance.suite.bench import Bench
from conformance.suite.judge import Judgement, judge, unfit
from conformance.suite.room import MOST, Room, width_here
from conformance.suite.scenario import Key, Scenario
from fakebrokers.errors import JournalError
from fakebrokers.journal import RunJournal

GOOD = (Verdict.PASS, Verdict.NON_STRICT)
FEW = 4  #: run at once when a client is judged for being late


class Runner:
    """See the module's text.

    Args:
        bench: Where the clients come from.
        make_broker: Makes the fake of a scenario.
        open_run: Opens the journal on disk for a run; None writes none.
        parallel: How many scenarios at once; None: as many as the machine carries (`room`). The adapter's
            limit ``processes`` may be lower.
        expected: What is known to fail; such a failure needs no second opinion.
        on_begin, on_end: For progress and reports; called on the runner's loop.
    """

    def __init__(
        self,
        bench: Bench,
        make_broker: Callable[[Scenario], Any],
        *,
        parallel: int | None = 4,
        endpoint: Callable[[Any], str] | None = None,
        connect_options: dict[str, Any] | None = None,
        target: bool = False,
        open_run: Callable[[Scenario], RunJournal] | None = None,
        expected: Collection[Key] = (),
        on_begin: Callable[[Scenario], None] = lambda _: None,
        on_end: Callable[[Judgement], None] = lambda _: None,
    ) -> None:
        self._bench = bench
        self._make_broker = make_broker
        self._parallel = parallel
        self._endpoint = endpoint
        self._connect_options = connect_options
        self._target = target
        self._open_run = open_run
        self._expected = frozenset(expected)
        self._on_begin = on_begin
        self._on_end = on_end

    async def run(self, scenarios: Sequence[Scenario]) -> list[Judgement]:
        """Run them all; the judgements come in the order of `scenarios`.

        Whatever is cut short (Ctrl-C) ends the client processes too.
        """
        found: dict[Any, Judgement] = {}
        try:
            hello = await self._bench.hello()
            fit = []
            for item in scenarios:
                refused = unfit(item, hello, target=self._target)
                if refused is None:
                    fit.append(item)
                else:
                    found[item.key] = refused
                    self._on_end(refused)
            fit.sort(key=lambda s: -s.timeout_s)
            most = int(min(self._parallel or MOST, hello.limits.get("processes", MOST)))
            crowd = Room(self._parallel or width_here(), most, follows_lag=self._parallel is None)
            late = await self._together([s for s in fit if not s.alone], crowd, found)
            few = Room(FEW, min(FEW, most), follows_lag=False)
            await self._together(late, few, found, apart=True)
            one = Room(1, 1, follows_lag=False)
            await self._together([s for s in fit if s.alone], one, found, apart=True)
        finally:
            await self._bench.close()
        return [found[item.key] for item in scenarios if item.key in found]

    async def _together(
        self, items: list[Scenario], room: Room, found: dict[Any, Judgement], *, apart: bool = False
    ) -> list[Scenario]:
        """Run them, as many at once as there is room for.

        Returns:
            Those that were only late and are to be judged again, apart from the others.
        """
        late: list[Scenario] = []

        async def one(item: Scenario) -> None:
            try:
                self._on_begin(item)
                judgement = await self.settle(item, apart=apart or room.most == 1)
                if judgement is None:
                    late.append(item)
                    return
                found[item.key] = judgement
                self._on_end(judgement)
            finally:
                room.leave()

        async with room, asyncio.TaskGroup() as group:
            for item in items:
                await room.enter()
                group.create_task(one(item))
        return late

    async def settle(self, item: Scenario, *, apart: bool) -> Judgement | None:
        """The verdict on one scenario, second opinions included.

        A failure is repeated in a fresh process. Where the two differ, a third run decides, and it is tagged
        ``flaky``.

        Args:
            apart: Few others run beside it. Where they do not, a client that was only late is not judged:
                that gives None.
        """
        first = await self.once(item)
        if item.key in self._expected:
            return first
        if not apart and first.is_late:
            return None
        if first.verdict is not Verdict.FAIL:
            return first
        second = await self.once(item, fresh=True)
        if second.verdict is Verdict.FAIL:
            return second
        third = await self.once(item, fresh=True)
        agreed = third if third.verdict in (Verdict.FAIL, second.verdict) else second
        kept = first if agreed.verdict is Verdict.FAIL else agreed
        return msgspec.structs.replace(kept, tags=(*kept.tags, "flaky"))

    async def once(self, item: Scenario, *, fresh: bool = False) -> Judgement:
        """One run of one scenario."""
        adapter: Adapter | None = None
        judgement: Judgement | None = None
        try:
            adapter = await self._bench.take(fresh=fresh)
            judgement = await judge(
                item,
                adapter,
                self._make_broker,
                endpoint=self._endpoint,
                connect_options=self._connect_options,
                note=self._open_run(item) if self._open_run else None,
            )
        except (AdapterFailed, JournalError) as error:
            judgement = Judgement(item, Verdict.HARNESS_ERROR, reason=str(error))
        finally:
            if adapter is not None:
                healthy = judgement is not None and judgement.verdict in GOOD
                await self._bench.give_back(adapter, healthy=healthy)
        return judgement
