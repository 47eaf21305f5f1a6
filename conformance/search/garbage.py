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

    What is there at the beginning stays: it is not looked at again. Where the process has frozen what it has
    already, that is left as it is: `gc.unfreeze` knows no part of it, and each later collection would walk
    through all of it.
    """
    was_on = gc.isenabled()
    is_frozen = gc.get_freeze_count() > 0
    gc.disable()
    if not is_frozen:
        gc.freeze()
    try:
        yield _collect
    finally:
        if not is_frozen:
            gc.unfreeze()
        if was_on:
            gc.enable()
