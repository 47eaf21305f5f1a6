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
from conformance.suite.scenario import Key, Scenario
from fakebrokers.errors import JournalError
from fakebrokers.journal import RunJournal

GOOD = (Verdict.PASS, Verdict.NON_STRICT)


class Runner:
    """See the module's text.

    Args:
        bench: Where the clients come from.
        make_broker: Makes the fake of a scenario.
        open_run: Opens the journal on disk for a run; None writes none.
        parallel: How many scenarios at once, unless the adapter's limit ``processes`` is lower.
        expected: What is known to fail; such a failure needs no second opinion.
        on_begin, on_end: For progress and reports; called on the runner's loop.
    """

    def __init__(
        self,
        bench: Bench,
        make_broker: Callable[[Scenario], Any],
        *,
        parallel: int = 4,
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
            width = min(self._parallel, int(hello.limits.get("processes", self._parallel)))
            await self._together([s for s in fit if not s.alone], width, found)
            await self._together([s for s in fit if s.alone], 1, found)
        finally:
            await self._bench.close()
        return [found[item.key] for item in scenarios if item.key in found]

    async def _together(self, items: list[Scenario], width: int, found: dict[Any, Judgement]) -> None:
        waiting = list(reversed(items))

        async def work() -> None:
            while waiting:
                item = waiting.pop()
                self._on_begin(item)
                found[item.key] = await self.settle(item)
                self._on_end(found[item.key])

        async with asyncio.TaskGroup() as group:
            for _ in range(min(width, len(items))):
                group.create_task(work())

    async def settle(self, item: Scenario) -> Judgement:
        """The verdict on one scenario, second opinions included.

        A failure is repeated in a fresh process. One that is only late is repeated twice: two passes
        make it a pass. Where the first two differ otherwise, a third run decides. All that differs is
        tagged ``flaky``.
        """
        first = await self.once(item)
        if first.verdict is not Verdict.FAIL or item.key in self._expected:
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
