"""Which mutants the sweep finds by itself, without a single scenario."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import active_children, get_context
from random import Random

import msgspec

from conformance.clients.mutants.registry import Mutant, mutants_of
from conformance.rules import judge
from conformance.rules.registry import ALIVE, HARNESS
from conformance.run.inprocess import runner
from conformance.run.specs import Spec
from conformance.search.systematic.order import DrawOrder
from conformance.search.systematic.sweep import Sweep, rare_collections
from conformance.search.systematic.universe import DrawableSpec, universe

SECONDS = 60.0
LEFT_OUT = "wording"  #: the tag of mutants that only say something otherwise


class Kill(msgspec.Struct):
    """What the sweep makes of one mutant.

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
    one: Callable[..., Kill] | None = None,
) -> list[Kill]:
    """Sweep each mutant until it is found.

    Args:
        seconds: What each may cost, of processor time.
        processes: How many to use; none of them outlives the call.
        one: What is done with a mutant; as `kill`, which is the default.
    """
    found = []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        try:
            jobs = [
                pool.submit(one or kill, each.protocol, each.name, each.tag, seconds, os.getpid())
                for each in chosen
            ]
            for job in as_completed(jobs):
                found.append(job.result())
                on_kill(found[-1])
        except BaseException:
            for worker in active_children():
                worker.kill()
            raise
    return sorted(found, key=lambda one: (one.protocol, one.name))


def kill(protocol: str, name: str, tag: str, seconds: float, parent: int = 0) -> Kill:
    """Sweep one mutant. A run that the correct client fails as well is no kill."""
    sweep = Sweep(runner(protocol, name))
    correct = runner(protocol)
    begun = time.process_time()
    with rare_collections() as collect:
        for spec in DrawOrder(_items(protocol)):
            if time.process_time() - begun > seconds or (parent and os.getppid() != parent):
                break
            findings = sweep.try_one(spec)
            collect(sweep.runs)
            if not findings:
                continue
            excused = {finding.name for finding in judge(correct(spec))}
            if excused & {ALIVE, HARNESS}:
                continue  # the run is too much for this machine, and says nothing
            own = [finding for finding in findings if finding.name not in excused]
            if own:
                names = [finding.name for finding in own]
                return Kill(protocol, name, tag, names, sweep.runs, spec, own[0].detail)
    return Kill(protocol, name, tag, runs=sweep.runs)


@cache
def _items(protocol: str) -> list[DrawableSpec]:
    return universe(protocol)
