"""Correlation keys: as the frame holds them, as values, and as text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, unpack_keys

U64_MAX = (1 << 64) - 1

#: First of the consecutive numbers, how many keys, and the keys as text where they are no such numbers.
RowKeys = tuple[int | None, int, tuple[str, ...]]


def raw_keys(frame: Frame, spec: FrameSpec) -> Any:
    """The keys as the frame holds them; packed ones stay packed.

    Those of a batch that no field holds, or not in a way that tells them apart, are asked of its items.
    """
    raw = getattr(frame, spec.key) if spec.key else None
    if spec.items is not None and (raw is None or (isinstance(raw, bytes) and not spec.keys.width)):
        return tuple(spec.items.keys(frame))
    return raw


def expand(raw: Any, spec: FrameSpec) -> tuple[Any, ...]:
    """Each of the keys that `raw_keys` gave."""
    if raw is None:
        return ()
    if spec.items is not None and isinstance(raw, bytes) and spec.keys.width:
        return tuple(unpack_keys(raw, spec.keys))
    if isinstance(raw, tuple) and (spec.items is not None or spec.keys is not KeyType.TUPLE):
        return raw
    return (raw,)


def key_text(key: Any, kind: str = "") -> str:
    """A correlation key as text, the only form in which keys of different frames are compared.

    Numbers are decimal and texts stay as they are. Bytes are shown as they are if they are readable and do
    not begin with ``0x``, else as ``0x`` and hexadecimal digits, and so are GUIDs always. The elements of
    a tuple are joined by commas; commas and backslashes in them have a backslash in front.

    Args:
        kind: The `KeyType`, if it is known.
    """
    if isinstance(key, bytes):
        return _bytes_text(key, readable=kind != KeyType.BYTES16)
    if isinstance(key, tuple | list):
        return ",".join([key_text(part).replace("\\", "\\\\").replace(",", "\\,") for part in key])
    return str(key)


def _bytes_text(key: bytes, *, readable: bool) -> str:
    if readable:
        try:
            text = key.decode()
        except UnicodeDecodeError:
            text = "\0"
        if text.isprintable() and not text.startswith("0x"):
            return text
    return f"0x{key.hex()}"


def row_keys(raw: Any, items: int, kind: str, *, batch: bool) -> RowKeys:
    """The keys of a line as a row has them.

    Args:
        raw: As the line holds them.
        items: As the line says; 0 means that `raw` is packed.
        kind: The `KeyType`; empty where the journal is too old for it.
        batch: Frames of this kind have items.
    """
    one = raw[0] if type(raw) is list and len(raw) == 1 else raw if items == 1 else None
    if type(one) is int and 0 <= one <= U64_MAX and kind in ("", KeyType.U64):  # as most are
        return one, 1, ()
    if isinstance(raw, bytes) and items == 0:
        return _unpacked(raw, kind or KeyType.U64)
    if isinstance(raw, list) and kind == KeyType.TUPLE and not batch:
        return None, items, (key_text(raw),)
    numbers = kind in ("", KeyType.U64)
    if isinstance(raw, list):
        if raw and numbers and all(type(key) is int for key in raw):
            return _numbers(raw)
        return None, len(raw), tuple([key_text(key, kind) for key in raw])
    if numbers and type(raw) is int and 0 <= raw <= U64_MAX - max(items - 1, 0):
        return raw, items, ()
    return None, items, () if raw is None else (key_text(raw, kind),)


def _unpacked(packed: bytes, kind: str) -> RowKeys:
    if kind == KeyType.U64:
        count = len(packed) // 8
        return _numbers(struct.unpack(f">{count}Q", packed[: count * 8]))
    whole = kind != KeyType.BYTES16
    keys = tuple([key_text(key, kind) for key in ([packed] if whole else unpack_keys(packed, KeyType(kind)))])
    return None, len(keys), keys


def _numbers(numbers: Sequence[int]) -> RowKeys:
    count = len(numbers)
    if count and numbers[0] >= 0 and numbers[-1] <= U64_MAX and _consecutive(numbers):
        return numbers[0], count, ()
    return None, count, tuple([str(number) for number in numbers])


def _consecutive(numbers: Sequence[int]) -> bool:
    first, count = numbers[0], len(numbers)
    return numbers[-1] - first == count - 1 and tuple(numbers) == tuple(range(first, first + count))
