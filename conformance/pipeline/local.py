"""The units of an analysis on the cores of this machine, without Spark and without Java."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from conformance.pipeline.summary import Summary, packed, unpacked
from conformance.pipeline.units import Unit, judged, kept


def judge_here(units: Sequence[Unit], out: str, rows: int, progress: Callable[[int], None]) -> Summary:
    """All of them.

    Args:
        rows: Of all units: a small journal is judged in this process.
        progress: Gets how many are done, whenever one is.
    """
    from conformance.pipeline.units import SMALL

    whole, left = Summary(), []
    for unit in units:
        earlier = kept(unit, out)
        if earlier is None:
            left.append(unit)
        else:
            whole.add(earlier)
    known = len(units) - len(left)
    workers = min(len(left), os.cpu_count() or 1)
    if rows <= SMALL or workers < 2:
        for done, unit in enumerate(left, start=known + 1):
            whole.add(judged(unit, out))
            progress(done)
        return whole
    # Not forked: pyarrow has threads, and a fork has none of them.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(_judged, unit, out) for unit in left]
        try:
            for done, future in enumerate(as_completed(waiting), start=known + 1):
                whole.add(unpacked(future.result()))
                progress(done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return whole


def _judged(unit: Unit, out: str) -> bytes:
    return packed(judged(unit, out))
