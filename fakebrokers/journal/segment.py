"""A file that only grows and that survives the death of its writer.

Blocks are copied into a shared mapping of the file, so they outlive a ``kill -9`` (not a power cut). The
length in front of a block is written after the block itself: one that was cut short has none.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fakebrokers.journal.lines import ENCODER, LENGTH, MAGIC, UNENCODABLE, encode

try:
    import fcntl
except ImportError:  # Windows: nobody can tell a living writer from a dead one there
    fcntl = None  # type: ignore[assignment]

_GRAIN = mmap.ALLOCATIONGRANULARITY
_HEAD = LENGTH.size
_encode = ENCODER.encode
_put_length = LENGTH.pack_into


class Segment:
    """A journal file being written, by one thread.

    Args:
        path: Of a file that does not exist yet.
        window: Bytes by which the file grows, and that are mapped at a time.

    Raises:
        OSError: The disk is full (`append`), or the file cannot be made.
    """

    def __init__(self, path: Path, window: int = 1 << 20) -> None:
        self.path = path
        self._window = max(_GRAIN, window // _GRAIN * _GRAIN)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, flags, 0o644)
        if fcntl is not None:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._base = 0  # where in the file the window begins
        self._at = 0  # where in the window the next block goes
        self._map = self._mapped(self._window)
        self._size = self._window
        self._map[: len(MAGIC)] = MAGIC
        self._at = len(MAGIC)

    def append(self, lines: Sequence[tuple[Any, ...]]) -> None:
        """Write a block; see `lines` for the elements."""
        try:
            data = _encode(lines)
        except UNENCODABLE:
            data = encode(lines)
        at = self._at
        start = at + _HEAD
        end = start + len(data)
        if end > self._size:
            at = self._advance(_HEAD + len(data))
            start = at + _HEAD
            end = start + len(data)
        window = self._map
        window[start:end] = data
        _put_length(window, at, end - start)
        self._at = end

    def close(self) -> None:
        """Cut the file to what was written. Safe to call twice."""
        if self._file >= 0:
            self._map.close()
            with contextlib.suppress(OSError):  # a full disk must not hide what the test found
                os.ftruncate(self._file, self._base + self._at)
            os.close(self._file)
            self._file = -1

    def _advance(self, room: int) -> int:
        """Map the part of the file where the next `room` bytes go; returns where they go in it."""
        skip = self._at // _GRAIN * _GRAIN
        size = max(self._window, -(-(self._at - skip + room) // _GRAIN) * _GRAIN)
        self._map.close()
        self._base += skip
        self._at -= skip
        self._size = 0  # should the next step fail, nothing fits until it works
        self._map = self._mapped(size)
        self._size = size
        return self._at

    def _mapped(self, size: int) -> mmap.mmap:
        if hasattr(os, "posix_fallocate"):  # a full disk is an error here, not a crash at the first store
            os.posix_fallocate(self._file, self._base, size)
        else:
            os.ftruncate(self._file, self._base + size)
        return mmap.mmap(self._file, size, offset=self._base)


def is_being_written(path: Path) -> bool:
    """Whether a living process writes this file. Always False on Windows."""
    if fcntl is None:
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
