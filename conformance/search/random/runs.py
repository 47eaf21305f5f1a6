"""Runs one after the other, in a pool of processes, or side by side in real time."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import NamedTuple

import msgspec

from conformance.pool import in_order
from conformance.search.random.client import ChaosClient
from conformance.search.random.draw import Setting, draw
from conformance.search.random.verdict import RunVerdict, verdict_on

COLLECT_EVERY = 50  #: runs between two collections of garbage
LOOK_S = 0.2


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
        folder: For journals; None: they are not kept.
        processes: How many runs at once.
        until: On the monotonic clock; None: as long as there are seeds.
    """

    setting: Setting
    contract: str = ""
    folder: Path | None = None
    processes: int = 1
    until: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether the time is."""
        return self.until is not None and time.monotonic() >= self.until

    def run(self, subject: ChaosClient, seed: str) -> Outcome:
        """Run the schedule of a seed. Blocks."""
        begun = time.monotonic()
        case = subject.run(draw(self.setting, seed), self.contract, self.folder)
        return Outcome(seed, verdict_on(case), case.digest, time.monotonic() - begun)


def outcomes(subject: ChaosClient, seeds: Iterator[str], wanted: Wanted) -> Iterator[Outcome]:
    """Run the schedules of these seeds until the time is over."""
    if subject.is_process:
        return _live(subject, seeds, wanted)
    if wanted.processes > 1:
        return _pooled(subject, seeds, wanted)
    return _one_by_one(subject, seeds, wanted)


def _one_by_one(subject: ChaosClient, seeds: Iterator[str], wanted: Wanted) -> Iterator[Outcome]:
    was_on = gc.isenabled()
    gc.disable()  # between two collections it would cost a tenth
    try:
        for number, seed in enumerate(seeds, 1):
            if wanted.is_over:
                return
            yield wanted.run(subject, seed)
            if number % COLLECT_EVERY == 0:
                gc.collect()
    finally:
        if was_on:
            gc.enable()


# a pool of processes


@cache
def _subject(protocol: str, name: str, mutant: str) -> ChaosClient:
    return ChaosClient(protocol, name, mutant)


def _work(name: str, mutant: str, wanted: Wanted, seed: str) -> bytes:
    return msgspec.msgpack.encode(wanted.run(_subject(wanted.setting.protocol, name, mutant), seed))


def _pooled(subject: ChaosClient, seeds: Iterator[str], wanted: Wanted) -> Iterator[Outcome]:
    """In the order of the seeds, so that a campaign tells the same whatever the number of processes."""
    work = partial(_work, subject.name, subject.mutant, wanted)
    for found in in_order(work, seeds, wanted.processes, lambda: wanted.is_over):
        yield msgspec.msgpack.decode(found, type=Outcome)


# clients in processes of their own


class _Side:
    """Several runs at once on a loop in a thread; their outcomes come out as they end."""

    def __init__(self, subject: ChaosClient, seeds: Iterator[str], wanted: Wanted) -> None:
        self._subject = subject
        self._seeds = seeds
        self._wanted = wanted
        self._stopped = Event()
        self.found: SimpleQueue[Outcome | BaseException | None] = SimpleQueue()
        self.thread = Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self.found.put(error)
        else:
            self.found.put(None)

    async def _work(self) -> None:
        tasks = [asyncio.create_task(self._worker()) for _ in range(self._wanted.processes)]
        watch = asyncio.create_task(self._cancel_when_stopped(tasks))
        await asyncio.gather(*tasks)
        watch.cancel()

    async def _worker(self) -> None:
        for seed in self._seeds:
            if self._wanted.is_over:
                return
            begun = time.monotonic()
            schedule = draw(self._wanted.setting, seed)
            case, verdict = await self._subject.judge_live(
                schedule, self._wanted.contract, self._wanted.folder
            )
            self.found.put(Outcome(seed, verdict, case.digest, time.monotonic() - begun))

    async def _cancel_when_stopped(self, tasks: list[asyncio.Task[None]]) -> None:
        while not self._stopped.is_set():
            await asyncio.sleep(LOOK_S)
        for task in tasks:
            task.cancel()

    def stop(self) -> None:
        """End the runs that go on."""
        self._stopped.set()
        self.thread.join(timeout=10.0)


def _live(subject: ChaosClient, seeds: Iterator[str], wanted: Wanted) -> Iterator[Outcome]:
    side = _Side(subject, seeds, wanted)
    side.thread.start()
    try:
        while True:
            try:
                outcome = side.found.get(timeout=LOOK_S)  # short, so that Ctrl-C is heard
            except Empty:
                continue
            if outcome is None:
                return
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
    finally:
        side.stop()


def sharded(seeds: Iterator[str], shard: tuple[int, int] | None) -> Iterator[str]:
    """Of N parts the K-th, from 1: every N-th seed."""
    if shard is None:
        return seeds
    number, count = shard
    return itertools.islice(seeds, number - 1, None, count)
