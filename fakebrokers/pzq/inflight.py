"""The in-flight table: which messages were delivered, and when (docs/protocols/pzq.md, "Ack timeout").

In the daemon it is a cache of Kyoto Cabinet: 16 slots, each with a 16th of the room, each of which gives
up its oldest mark when it is over-full. A mark that is lost that way makes its message deliverable again
(recorded: with 4096 bytes, 16 marks for 300 messages).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from math import inf
from zlib import crc32

_SLOTS = 16
_MARK = 48  #: bytes of a mark besides its key
_TABLE = 1984  #: bytes of the table's own head
_BUCKETS = 524_288  #: bytes of a slot's hash buckets


def slot_capacity(size: int) -> int:
    """Bytes of marks that one slot holds when the whole table is given `size` bytes."""
    room = size // _SLOTS + 1
    for overhead in (_TABLE // _SLOTS, _BUCKETS):
        if room > overhead:
            room -= overhead
    return room


class InFlight:
    """Marks by key, oldest first within a slot.

    Args:
        size: Bytes of the whole table, as in the option ``--inflight-size``.
    """

    def __init__(self, size: int) -> None:
        self._slots: list[OrderedDict[bytes, float]] = [OrderedDict() for _ in range(_SLOTS)]
        self._sizes = [0] * _SLOTS
        self._capacity = slot_capacity(size)
        self._count = 0
        self._oldest = inf

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: bytes) -> bool:
        return key in self._slots[crc32(key) % _SLOTS]

    def __iter__(self) -> Iterator[bytes]:
        for slot in self._slots:
            yield from slot

    @property
    def size(self) -> int:
        """Bytes of all marks."""
        return sum(self._sizes)

    @property
    def oldest(self) -> float:
        """No mark is older than this (monotonic seconds); infinity if there is none."""
        return self._oldest if self._count else inf

    def add(self, key: bytes, now: float) -> bytes | None:
        """Mark a message as delivered; returns the key of the mark that had to go for it, if any."""
        number = crc32(key) % _SLOTS
        slot = self._slots[number]
        slot[key] = now
        self._count += 1
        self._sizes[number] += _MARK + len(key)
        self._oldest = min(self._oldest, now)
        if self._sizes[number] <= self._capacity:
            return None
        lost = next(iter(slot))
        self.remove(lost)
        return lost

    def remove(self, key: bytes) -> bool:
        """Take a mark away; False if there is none."""
        number = crc32(key) % _SLOTS
        if self._slots[number].pop(key, None) is None:
            return False
        self._sizes[number] -= _MARK + len(key)
        self._count -= 1
        if not self._count:
            self._oldest = inf
        return True

    def expire(self, now: float, timeout: float) -> list[bytes]:
        """Take away all marks older than `timeout` seconds (strictly); returns their keys."""
        if not now - self.oldest > timeout:
            return []
        expired: list[bytes] = []
        for slot in self._slots:
            while slot:
                key, sent = next(iter(slot.items()))
                if not now - sent > timeout:
                    break
                self.remove(key)
                expired.append(key)
        self._oldest = min((next(iter(slot.values())) for slot in self._slots if slot), default=inf)
        return expired

    def clear(self) -> None:
        """Take all marks away."""
        for slot in self._slots:
            slot.clear()
        self._sizes = [0] * _SLOTS
        self._count = 0
        self._oldest = inf
