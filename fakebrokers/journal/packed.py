"""The keys of many frames at once, where they are packed numbers of 64 bits: most of what batches hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fakebrokers.journal.keys import RowKeys

_WIDTH = 8


def consecutive(packed: Sequence[bytes | None]) -> list[RowKeys | None]:
    """For each pack of big-endian numbers that grow by one, its keys as `keys.row_keys` gives them.

    None for a pack of other numbers, and for what is None.
    """
    found: list[RowKeys | None] = [None] * len(packed)
    of = [i for i, pack in enumerate(packed) if pack and len(pack) % _WIDTH == 0]
    if not of:
        return found
    content = b"".join([pack for i in of if (pack := packed[i])])
    counts = np.array([len(packed[i] or b"") // _WIDTH for i in of])
    starts = np.cumsum(counts) - counts
    numbers = np.frombuffer(content, ">u8").astype(np.uint64)
    first, last = numbers[starts], numbers[starts + counts - 1]
    grown = np.repeat(first - starts.astype(np.uint64), counts) + np.arange(len(numbers), dtype=np.uint64)
    # Differences go around at 2^64, so a pack that does is caught by its ends.
    fits = np.logical_and.reduceat(numbers == grown, starts) & (last >= first)
    for i, fit, number, count in zip(of, fits.tolist(), first.tolist(), counts.tolist(), strict=True):
        if fit:
            found[i] = number, count, ()
    return found
