"""Deduplication by publishing id: what is not above the last id is dropped, but confirmed.

Rules: docs/protocols/rabbitmq-stream.md, 6 "Deduplication".
"""

from __future__ import annotations

import sys
from array import array
from operator import lt

import msgspec


class Deduplicated(msgspec.Struct, frozen=True):
    """The publishing ids of one Publish, new ones and duplicates apart.

    Attributes:
        duplicates: Ids of the dropped messages, packed as they came.
        fresh: Ids of the others, packed as they came.
        kept: Positions of the fresh ones; None: nothing was dropped.
        highest: The highest id so far.
    """

    duplicates: bytes
    fresh: bytes
    kept: list[int] | None
    highest: int


def deduplicate(publishing_ids: bytes, last: int) -> Deduplicated:
    """Tell new messages from duplicates, message by message: duplicates inside one frame are dropped too.

    Args:
        publishing_ids: Packed u64, big endian.
        last: The highest id that was written before; -1: none.
    """
    ids = array("Q", publishing_ids)
    if sys.byteorder == "little":
        ids.byteswap()
    if ids and ids[0] > last and all(map(lt, ids, ids[1:])):
        return Deduplicated(b"", publishing_ids, None, ids[-1])
    kept: list[int] = []
    dropped: list[int] = []
    for index, publishing_id in enumerate(ids):
        if publishing_id > last:
            kept.append(index)
            last = publishing_id
        else:
            dropped.append(index)
    return Deduplicated(_pick(publishing_ids, dropped), _pick(publishing_ids, kept), kept, last)


def _pick(publishing_ids: bytes, indices: list[int]) -> bytes:
    return b"".join([publishing_ids[8 * index : 8 * index + 8] for index in indices])
