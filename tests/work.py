"""Bytes that say how many of them were looked at: work is counted, not timed.

Give a decoder a `CountedBuffer` for its buffer, or `CountedBytes` for a frame's body, and compare what it did
with what it was given. Taking bytes off the front of a bytearray (``del buffer[:n]``) is free, as in CPython.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

#: Whoever calls one of these looks at everything, or may.
_WHOLE = (
    "__bytes__", "__contains__", "__iter__", "copy", "count", "decode", "endswith", "index", "lstrip",
    "partition", "replace", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines",
    "strip", "translate",
)  # fmt: skip


class _Counted:
    """For `bytes` and `bytearray`; `work` is the number of bytes that were looked at or copied."""

    work = 0

    def find(self, part: bytes, start: int = 0, end: int | None = None) -> int:
        """Counts up to the place, or all there is to search."""
        bound = len(self) if end is None else min(end, len(self))  # type: ignore[arg-type]
        at: int = super().find(part, start, bound)  # type: ignore[misc]
        self.work += (bound if at < 0 else at + len(part)) - start
        return at

    def startswith(self, prefix: bytes | tuple[bytes, ...], *bounds: int) -> bool:
        """Counts the longest prefix."""
        prefixes: Iterable[bytes] = prefix if isinstance(prefix, tuple) else (prefix,)
        self.work += max(map(len, prefixes))
        found: bool = super().startswith(prefix, *bounds)  # type: ignore[misc]
        return found

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)  # type: ignore[misc]
        self.work += len(found) if isinstance(key, slice) else 1
        return found


def _count_whole(name: str) -> Any:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        self.work += len(self)
        if name == "__bytes__":
            return bytes(memoryview(self))
        return getattr(super(type(self), self), name)(*args, **options)

    return method


for _name in _WHOLE:
    setattr(_Counted, _name, _count_whole(_name))


class CountedBuffer(_Counted, bytearray):
    """A buffer."""


class CountedBytes(_Counted, bytes):
    """A frame, or its body."""


class CountedPattern:
    """A compiled pattern that counts on the `CountedBuffer` that it searches."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern

    def search(self, buffer: CountedBuffer, start: int = 0, end: int | None = None) -> Any:
        """Counts up to the end of what was found, or all there is to search."""
        bound = len(buffer) if end is None else min(end, len(buffer))
        found = self._pattern.search(buffer, start, bound)
        buffer.work += max((found.end() if found else bound) - start, 0)
        return found

    def match(self, buffer: CountedBuffer) -> Any:
        """Counts what was matched."""
        found = self._pattern.match(buffer)
        buffer.work += found.end() + 1 if found else 1
        return found


def segments(data: bytes, size: int) -> Iterator[bytes]:
    """Data in pieces of a size."""
    return (data[at : at + size] for at in range(0, len(data), size))
