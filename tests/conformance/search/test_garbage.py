"""Garbage is collected rarely, and what the process has frozen stays frozen."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from conformance.search.garbage import COLLECT_EVERY, rare_collections


@pytest.fixture(params=[False, True], ids=["nothing frozen", "frozen before"])
def frozen(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = gc.get_freeze_count()
    gc.unfreeze()
    if request.param:
        gc.freeze()
    yield request.param
    if before:
        gc.freeze()
    else:
        gc.unfreeze()


def test_what_was_frozen_before_stays_so_and_nothing_else(frozen: bool) -> None:
    with rare_collections():
        assert gc.get_freeze_count() > 0
        assert not gc.isenabled()
    assert (gc.get_freeze_count() > 0) is frozen
    assert gc.isenabled()


def test_it_collects_now_and_then() -> None:
    before = gc.get_stats()[2]["collections"]
    with rare_collections() as collect:
        for runs in range(1, 3 * COLLECT_EVERY + 1):
            collect(runs)
    assert gc.get_stats()[2]["collections"] - before == 3
