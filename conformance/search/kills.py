"""Which mutants a search finds by itself, without a single scenario."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context
from random import Random

import msgspec

from conformance.clients.mutants.registry import Mutant, mutants_of
from conformance.run.specs import Spec

SECONDS = 60.0
LEFT_OUT = "wording"  #: the tag of mutants that only say something otherwise


class Kill(msgspec.Struct):
    """What a search makes of one mutant.

    Attributes:
        by: The invariants that its first failing run violates, and that the correct client does not.
        runs: How many runs that took, or all that there was time for.
        spec: That run.
        detail: What happened in it.
    """

    protocol: str
    name: str
    tag: str
    by: list[str] = []
    runs: int = 0
    spec: Spec | None = None
    detail: str = ""


def sample(protocol: str, count: int = 0, seed: int = 0, only: Sequence[str] = ()) -> list[Mutant]:
    """The mutants to try: `count` of them at random (0: all), or those with the names in `only`."""
    pool = [one for one in mutants_of(protocol) if one.tag != LEFT_OUT]
    if only:
        return [one for one in pool if one.name in only]
    Random(seed).shuffle(pool)
    return pool[:count] if count else pool


def kills(
    chosen: Sequence[Mutant],
    seconds: float = SECONDS,
    processes: int = 2,
    on_kill: Callable[[Kill], None] = lambda _: None,
    *,
    kill: Callable[[str, str, str, float, int], Kill],
) -> list[Kill]:
    """Search each mutant until it is found.

    Args:
        seconds: What each may cost, of processor time.
        processes: How many to use; none of them outlives the call.
        kill: Searches one: protocol, name, tag, seconds, and the process that it must not outlive.
    """
    found = []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        try:
            jobs = [
                pool.submit(kill, each.protocol, each.name, each.tag, seconds, os.getpid()) for each in chosen
            ]
            for job in as_completed(jobs):
                found.append(job.result())
                on_kill(found[-1])
        except BaseException:
            for worker in active_children():
                worker.kill()
            raise
    return sorted(found, key=lambda one: (one.protocol, one.name))


class Budget:
    """The processor time for one mutant, in a process that does not outlive its parent (0: any)."""

    def __init__(self, seconds: float, parent: int) -> None:
        self._end_s = time.process_time() + seconds
        self._parent = parent

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is begun."""
        return time.process_time() > self._end_s or bool(self._parent and os.getppid() != self._parent)
