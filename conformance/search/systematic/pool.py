"""Specs of a client in memory, in a pool of processes: all that comes back is which of them fail."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import islice, tee

from conformance.clients.adapter.kit import AdapterBase
from conformance.pool import in_order
from conformance.rules import judge
from conformance.run.inprocess import run
from conformance.run.simulated import NeedsProcess
from conformance.run.specs import Spec
from conformance.search.client import made_of
from conformance.search.systematic.sweep import Suspects

BATCH = 32  #: specs for a process at a time


def suspects(protocol: str, client: str, mutant: str, processes: int, specs: Iterable[Spec]) -> Suspects:
    """The specs in their order, and of each whether its run violates anything.

    Who wants to know more runs it again: the same spec runs the same way.
    """
    given, kept = tee(specs)
    look = partial(_look, protocol, client, mutant)
    for found in in_order(look, _batches(given), processes):
        yield from zip(islice(kept, len(found)), found, strict=True)


def _batches(specs: Iterator[Spec]) -> Iterator[list[Spec]]:
    while batch := list(islice(specs, BATCH)):
        yield batch


def _look(protocol: str, client: str, mutant: str, specs: list[Spec]) -> list[bool]:
    made = made_of(protocol, client, mutant)
    assert made is not None
    _freeze()
    gc.disable()  # between two collections it would cost a tenth
    try:
        return [_fails(made, spec) for spec in specs]
    finally:
        gc.enable()
        gc.collect()


def _fails(made: type[AdapterBase], spec: Spec) -> bool:
    """Whether a run violates anything; who runs it again finds out whether it needs a process."""
    try:
        return bool(judge(run(made, spec)))
    except NeedsProcess:
        return True


@cache
def _freeze() -> None:
    """What is there at the beginning stays: no collection looks at it."""
    gc.freeze()
