"""MurmurHash3, 32 bits, for keys of super streams: all clients have to agree on the partition."""

from __future__ import annotations

SEED = 104729

_U32 = 0xFFFFFFFF


def murmur3(data: bytes, seed: int = SEED) -> int:
    """The hash, an unsigned number."""
    whole = len(data) & ~3
    found = seed
    for at in range(0, whole, 4):
        found ^= _mixed(int.from_bytes(data[at : at + 4], "little"))
        found = _rotated(found, 13) * 5 + 0xE6546B64 & _U32
    found ^= _mixed(int.from_bytes(data[whole:], "little")) ^ len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        found = (found ^ found >> shift) * factor & _U32
    return found


def _mixed(block: int) -> int:
    return _rotated(block * 0xCC9E2D51 & _U32, 15) * 0x1B873593 & _U32


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & _U32
