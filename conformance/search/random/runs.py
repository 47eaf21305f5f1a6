"""Runs one after the other, in a pool of processes, or side by side in real time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

import msgspec

from conformance.pool import in_order
from conformance.run.simulated import NeedsProcess
from conformance.search.garbage import rare_collections
from conformance.search.live import SIDE_BY_SIDE, side_by_side
from conformance.search.random.client import ChaosClient
from conformance.search.random.draw import Setting, draw
from conformance.search.random.history import KeptJournals
from conformance.search.random.verdict import RunVerdict, verdict_on


class Outcome(msgspec.Struct):
    """What a campaign keeps of a run."""

    seed: str
    verdict: RunVerdict
    digest: str
    seconds: float

    @property
    def word(self) -> str:
        """How it ended."""
        return str(self.verdict.word)

    @property
    def names(self) -> list[str]:
        """What was found."""
        return self.verdict.names

    @property
    def reason(self) -> str:
        """Why there is no verdict."""
        return self.verdict.reason


class Wanted(NamedTuple):
    """How seeds are run.

    Attributes:
        contract: See `conformance.search.random.run.run`.
        kept: Where journals are kept; None: nowhere.
        processes: How many runs at once.
        until: On the monotonic clock; None: as long as there are seeds.
    """

    setting: Setting
    contract: str = ""
    kept: KeptJournals | None = None
    processes: int = 1
    until: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether the time is."""
        return self.until is not None and time.monotonic() >= self.until

    def run(self, subject: ChaosClient, seed: str) -> Outcome:
        """Run the schedule of a seed. Blocks."""
        begun = time.monotonic()
        case = subject.run(draw(self.setting, seed), self.contract, self.kept)
        return Outcome(seed, verdict_on(case), case.digest, time.monotonic() - begun)


def outcomes(subject: ChaosClient, seeds: Iterator[str], wanted: Wanted) -> Iterator[Outcome]:
    """Run the schedules of these seeds until the time is over."""
    if subject.is_process:
        return _live(subject, seeds, wanted)
    run = _pooled if wanted.processes > 1 else _one_by_one
    return _with_processes(run(subject, seeds, wanted), subject, wanted)


def _with_processes(here: Iterator[Outcome | str], subject: ChaosClient, wanted: Wanted) -> Iterator[Outcome]:
    """The seeds among them need a process of the client's own: several at once get one."""
    waiting: list[str] = []
    lively = wanted._replace(processes=SIDE_BY_SIDE)
    for found in here:
        if isinstance(found, Outcome):
            yield found
            continue
        waiting.append(found)
        if len(waiting) >= SIDE_BY_SIDE:
            yield from _live(subject, iter(waiting), lively)
            waiting.clear()
    yield from _live(subject, iter(waiting), lively)


def _one_by_one(subject: ChaosClient, seeds: Iterator[str], wanted: Wanted) -> Iterator[Outcome | str]:
    with rare_collections() as collect:
        for number, seed in enumerate(seeds, 1):
            if wanted.is_over:
                return
            yield _run_here(subject, wanted, seed)
            collect(number)


def _run_here(subject: ChaosClient, wanted: Wanted, seed: str) -> Outcome | str:
    """The outcome, or the seed, if it needs a process."""
    try:
        return wanted.run(subject, seed)
    except NeedsProcess:
        return seed


# a pool of processes


@cache
def _subject(protocol: str, name: str, mutant: str) -> ChaosClient:
    return ChaosClient(protocol, name, mutant, stock_in_memory=True)


def _work(name: str, mutant: str, wanted: Wanted, seed: str) -> bytes:
    subject = _subject(wanted.setting.protocol, name, mutant)
    return msgspec.msgpack.encode(_run_here(subject, wanted, seed))


def _pooled(subject: ChaosClient, seeds: Iterator[str], wanted: Wanted) -> Iterator[Outcome | str]:
    """In the order of the seeds, so that a campaign tells the same whatever the number of processes."""
    work = partial(_work, subject.name, subject.mutant, wanted)
    for found in in_order(work, seeds, wanted.processes, lambda: wanted.is_over):
        yield msgspec.msgpack.decode(found, type=Outcome | str)


# clients in processes of their own


def _live(subject: ChaosClient, seeds: Iterator[str], wanted: Wanted) -> Iterator[Outcome]:
    async def run(seed: str) -> Outcome:
        begun = time.monotonic()
        schedule = draw(wanted.setting, seed)
        case, verdict = await subject.judge_live(schedule, wanted.contract, wanted.kept)
        return Outcome(seed, verdict, case.digest, time.monotonic() - begun)

    return side_by_side(run, seeds, wanted.processes, lambda: wanted.is_over)


def sharded(seeds: Iterator[str], shard: tuple[int, int] | None) -> Iterator[str]:
    """Of N parts the K-th, from 1: every N-th seed."""
    if shard is None:
        return seeds
    number, count = shard
    return itertools.islice(seeds, number - 1, None, count)
