"""Garbage is collected now and then while thousands of short runs go through one process."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

COLLECT_EVERY = 100  #: runs between two collections of garbage; between them it would cost a tenth


def _collect(runs: int) -> None:
    if runs % COLLECT_EVERY == 0:
        gc.collect()


@contextmanager
def rare_collections() -> Iterator[Callable[[int], None]]:
    """Collect garbage only now and then: call what this yields with the number of runs so far.

    What is there at the beginning stays: it is not looked at again.
    """
    was_on = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield _collect
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()
