"""Runs many scenarios on one client or on several: in parallel, longest first, with second opinions.

What surprises gets a second opinion, if needed a third: a failure that nobody knows, a rule violated that
nobody knows, a pass of what is known to fail. What the rules found stands where two runs of a scenario show
it. Where the machine kept client and harness waiting for a processor (`lag`),
nothing counts that may rest on time, nor what speaks against what is known: such a scenario is judged again
beside few others, then alone. What is in doubt even then is inconclusive; but what is about content, and is
the same again, stands.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from conformance.clients.adapter.base import Adapter, AdapterFailed
from conformance.known.defects import KnownDefects
from conformance.results import Verdict
from conformance.rules import Finding
from conformance.suite.expectations import foresee, news
from conformance.suite.judge import Judgement, judge, unfit
from conformance.suite.limiter import MOST, Limiter, width_here
from conformance.suite.pool import AdapterPool
from conformance.suite.scenario import Key, Scenario
from fakebrokers.errors import FakeBrokerError, JournalError
from fakebrokers.journal import RunJournal

GOOD = (Verdict.PASS, Verdict.NON_STRICT)
FEW = 4  #: run at once when a client is judged for being late


class Runner:
    """One client.

    What may rest on time is judged among few others before it counts, up to three times in all: a client that
    is late once is no client that hangs.

    Args:
        pool: Where the clients come from.
        make_broker: Makes the fake of a scenario.
        open_run: Opens the journal on disk for a run; None writes none.
        parallel: How many scenarios at once; None: as many as the machine carries (`room`). The adapter's
            limit ``processes`` may be lower.
        known: What is known of the client. What is as known needs no second opinion.
        on_served: Called with a scenario and the adapter that has served it, which was reset or has ended.
        on_begin, on_again, on_end: For progress and reports; called on the runner's loop. Where a scenario is
            judged again later, the second of them ends the first.

    Attributes:
        refused: Why the client cannot be judged.
    """

    def __init__(
        self,
        pool: AdapterPool,
        make_broker: Callable[[Scenario], Any],
        *,
        parallel: int | None = 4,
        endpoint: Callable[[Any], str] | None = None,
        connect_options: dict[str, Any] | None = None,
        target: bool = False,
        open_run: Callable[[Scenario], RunJournal] | None = None,
        known: KnownDefects | None = None,
        on_served: Callable[[Scenario, Adapter], None] = lambda _, __: None,
        on_begin: Callable[[Scenario], None] = lambda _: None,
        on_again: Callable[[Scenario], None] = lambda _: None,
        on_end: Callable[[Judgement], None] = lambda _: None,
    ) -> None:
        self._pool = pool
        self._make_broker = make_broker
        self._parallel = parallel
        self._endpoint = endpoint
        self._connect_options = connect_options
        self._target = target
        self._open_run = open_run
        self._known = known or KnownDefects()
        self._on_served = on_served
        self._on_begin = on_begin
        self._on_again = on_again
        self._on_end = on_end
        self.refused: FakeBrokerError | None = None
        self._found: dict[Key, Judgement] = {}
        self._crowd: list[Scenario] = []
        self._few: list[Scenario] = []
        self._alone: list[Scenario] = []
        self._most = MOST

    async def run(self, scenarios: Sequence[Scenario]) -> list[Judgement]:
        """Run them all; the judgements come in the order of `scenarios`.

        Raises:
            FakeBrokerError: The client cannot be judged.
        """
        await run_together({self: scenarios}, self._parallel)
        if self.refused is not None:
            raise self.refused
        return [self._found[item.key] for item in scenarios if item.key in self._found]

    async def greet(self, scenarios: Sequence[Scenario]) -> None:
        """Start the client, and sort the scenarios by what it says about itself."""
        try:
            hello = await self._pool.hello()
        except FakeBrokerError as error:
            self.refused = error
            return
        for item in sorted(scenarios, key=lambda s: -s.timeout_s):
            unfitting = unfit(item, hello, target=self._target)
            if unfitting is not None:
                self._end(unfitting)
            else:
                (self._alone if item.alone else self._crowd).append(item)
        self._most = int(min(self._parallel or MOST, hello.limits.get("processes", MOST)))

    async def crowd(self, limiter: Limiter, rank: int) -> None:
        """Run what may run beside others; clients of a lower `rank` go first."""
        is_alone = min(limiter.most, self._most) == 1
        self._few = await self._together(self._crowd, limiter, rank, apart=is_alone, final=is_alone)
        self._crowd = []

    async def few(self, limiter: Limiter, rank: int) -> None:
        """Run again what was late, or was kept waiting, in the crowd."""
        self._alone = await self._together(self._few, limiter, rank, apart=True) + self._alone
        self._few = []

    async def alone(self, limiter: Limiter, rank: int) -> None:
        """Run what nothing may run beside."""
        await self._together(self._alone, limiter, rank, apart=True, final=True)
        self._alone = []

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to run."""
        return not (self._crowd or self._few or self._alone)

    async def rest(self) -> None:
        """End the client's processes; what is run next starts others."""
        await self._pool.close()

    async def _together(
        self, items: Sequence[Scenario], limiter: Limiter, rank: int, *, apart: bool, final: bool = False
    ) -> list[Scenario]:
        """Run them, as many at once as there is room for.

        Returns:
            Those that are to be judged again, apart from the others.
        """
        again: list[Scenario] = []
        processes = asyncio.Semaphore(self._most)

        async def one(item: Scenario) -> None:
            try:
                self._on_begin(item)
                judgement = await self.settle(item, apart=apart, final=final)
                if judgement is None:
                    again.append(item)
                    self._on_again(item)
                else:
                    self._end(judgement)
            finally:
                limiter.leave()
                processes.release()

        async with asyncio.TaskGroup() as group:
            for item in items:
                await processes.acquire()
                await limiter.enter(rank)
                group.create_task(one(item))
        return again

    def take(self, judgement: Judgement) -> None:
        """A judgement that was made elsewhere, and stands."""
        self._end(judgement)

    def _end(self, judgement: Judgement) -> None:
        self._found[judgement.scenario.key] = judgement
        self._on_end(judgement)

    async def settle(self, item: Scenario, *, apart: bool, final: bool) -> Judgement | None:
        """The verdict on one scenario, second opinions included, which come from fresh processes.

        Where two differ, a third run decides, and the verdict is tagged ``flaky``.

        Args:
            apart: Few others run beside it. Where they do not, a client that was only late is not judged.
            final: It is not run again: what is in doubt is inconclusive.

        Returns:
            None, if it is to be judged again where fewer others run.
        """
        runs: list[Judgement] = []
        while True:
            latest = await self.once(item, fresh=bool(runs))
            broken = news(self._known, latest)
            if self._is_put_off(latest, broken, apart=apart, final=final):
                return None
            stands = latest.is_about_content or latest.verdict is Verdict.NON_STRICT
            if self._is_in_doubt(latest) and not stands:
                return latest.doubting(broken).undecided()
            runs.append(latest.doubting(broken if latest.is_starved else ()))
            if len(runs) == 1 and not broken and not self._needs_another(latest):
                return latest
            if len(runs) == 3 or (len(runs) == 2 and self._are_alike(*runs)):
                return self._decided(runs, final=final)

    def _is_put_off(self, latest: Judgement, broken: Sequence[Finding], *, apart: bool, final: bool) -> bool:
        """Whether it may be so for want of time, and is judged again where fewer others run."""
        if not apart and (broken or (self._is_news(latest) and latest.is_late)):
            return True
        return not final and (self._is_in_doubt(latest) or (bool(broken) and latest.is_starved))

    def _is_in_doubt(self, latest: Judgement) -> bool:
        """Whether it is news that the machine may have made."""
        starved_surprise = latest.is_starved and foresee(self._known, latest) is False
        return self._is_news(latest) and (latest.is_in_doubt or starved_surprise)

    def _decided(self, runs: Sequence[Judgement], *, final: bool) -> Judgement | None:
        """What two runs that are alike say, or three; None where a failure needs another look."""
        kept = self._confirmed(runs, runs[-1] if len(runs) == 2 else _majority(*runs))
        if kept.verdict is not Verdict.FAIL or _is_certain(runs):
            return kept.silent_again() if kept.is_late else kept
        return kept.undecided() if final else None

    def _is_news(self, judgement: Judgement) -> bool:
        """Whether it says anything against the client, or against what is known of it."""
        foreseen = foresee(self._known, judgement)
        quiet = (Verdict.PASS, Verdict.UNSUPPORTED, Verdict.PROFILE)
        return foreseen is False or (foreseen is None and judgement.verdict not in quiet)

    def _needs_another(self, judgement: Judgement) -> bool:
        """Whether a second opinion has to agree with it."""
        foreseen = foresee(self._known, judgement)
        return foreseen is False or (foreseen is None and judgement.verdict is Verdict.FAIL)

    def _are_alike(self, first: Judgement, second: Judgement) -> bool:
        """Whether both say the same, the violated rules among it of which nobody knows."""
        one, other = ({each.name for each in news(self._known, run)} for run in (first, second))
        return _are_alike(first, second) and one == other

    def _confirmed(self, runs: Sequence[Judgement], kept: Judgement) -> Judgement:
        """The judgement with what the rules have found in more than one of the runs, or was known before.

        What they found in a run that had the processor whenever it wanted is not in doubt.
        """
        times = Counter(name for run in runs for name in {each.name for each in run.broken})
        once = [each for run in runs for each in news(self._known, run) if times[each.name] == 1]
        stand = {each.name: each for run in runs for each in run.broken if each not in once}
        others = [each for each in kept.findings if each not in kept.broken]
        at_ease = {each.name for run in runs if not run.is_starved for each in run.broken}
        return msgspec.structs.replace(
            kept,
            findings=(*stand.values(), *others),
            notes=(*kept.notes, *(f"in one of {len(runs)} runs: {each}" for each in once)),
            doubted=frozenset().union(*(run.doubted for run in runs)) - at_ease,
        )

    async def once(self, item: Scenario, *, fresh: bool = False) -> Judgement:
        """One run of one scenario."""
        adapter: Adapter | None = None
        judgement: Judgement | None = None
        try:
            adapter = await self._pool.take(fresh=fresh)
            judgement = await judge(
                item,
                adapter,
                self._make_broker,
                endpoint=self._endpoint,
                connect_options=self._connect_options,
                note=self._open_run(item) if self._open_run else None,
            )
        except (AdapterFailed, JournalError) as error:
            is_late = isinstance(error, AdapterFailed) and error.answer is not None and error.answer.hang
            judgement = Judgement(item, Verdict.HARNESS_ERROR, reason=str(error), timing=is_late)
        finally:
            if adapter is not None:
                healthy = judgement is not None and judgement.verdict in GOOD
                await self._pool.give_back(adapter, healthy=healthy)
                self._on_served(item, adapter)
        return judgement


def _are_alike(first: Judgement, second: Judgement) -> bool:
    return first.verdict is second.verdict or (first.verdict in GOOD and second.verdict in GOOD)


def _is_certain(runs: Sequence[Judgement]) -> bool:
    """Whether a failure is the client's own: on an idle machine, or the same each time.

    Where something did not come in time before it, what happened has to be the same, too.
    """
    if not any(run.is_starved for run in runs):
        return True
    is_doubtful = any(run.is_in_doubt for run in runs)
    return len({(run.criterion_id, run.actual if is_doubtful else "") for run in runs}) == 1


def _majority(first: Judgement, second: Judgement, third: Judgement) -> Judgement:
    """The verdict of three runs of which the first two differ."""
    if _are_alike(first, second) and _are_alike(second, third):
        return third  # only what rules found in them differs
    kept = first if _are_alike(first, third) else third if _are_alike(second, third) else second
    return msgspec.structs.replace(kept, tags=(*kept.tags, "flaky"))


async def run_together(
    clients: Mapping[Runner, Sequence[Scenario]],
    parallel: int | None,
    on_done: Callable[[Runner], None] = lambda _: None,
) -> None:
    """Judge several clients within one limit: when one runs out of scenarios, the next one's fill the room.

    There are three rounds over all clients: many scenarios at once; a few, of those that were late or kept
    waiting; and what has to be alone on the machine.

    Args:
        clients: Each with its scenarios; the first ones go first.
        parallel: How many scenarios at once; None: as many as the machine carries.
        on_done: Gets each client when nothing is left to run of it.
    """
    most = parallel or MOST
    crowd = Limiter(parallel or width_here(), most, follows_lag=parallel is None)
    few, one = (Limiter(width, width, follows_lag=False) for width in (min(FEW, most), 1))

    async def begin(runner: Runner, rank: int) -> None:
        await crowd.enter(rank)
        try:
            await runner.greet(clients[runner])
        finally:
            crowd.leave()
        await runner.crowd(crowd, rank)

    async def round_of(limiter: Limiter, step: Callable[[Runner, int], Awaitable[None]]) -> None:
        async def work(runner: Runner, rank: int) -> None:
            await step(runner, rank)
            if len(clients) > 1:  # its processes would stay for the next round
                await runner.rest()
            if runner.is_done and runner not in done:
                done.add(runner)
                on_done(runner)

        async with limiter, asyncio.TaskGroup() as group:
            for rank, runner in enumerate(clients):
                if runner not in done:
                    group.create_task(work(runner, rank))

    done: set[Runner] = set()
    try:
        await round_of(crowd, begin)
        await round_of(few, lambda runner, rank: runner.few(few, rank))
        await round_of(one, lambda runner, rank: runner.alone(one, rank))
    finally:
        for runner in clients:
            await runner.rest()
