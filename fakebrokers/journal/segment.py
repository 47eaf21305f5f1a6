"""A file that only grows and that survives the death of its writer.

Blocks are copied into a shared mapping of the file, so they outlive a ``kill -9`` (not a power cut). The
length in front of a block is written after the block itself: one that was cut short has none.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet

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
        OSError: The file cannot be made. `append`: the disk is full. `append` and `close`: somebody has
            removed the file.
    """

    def __init__(self, path: Path, window: int = 1 << 20) -> None:
        self.path = path
        self._window = max(_GRAIN, window // _GRAIN * _GRAIN)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, flags, 0o644)
        self._base = 0  # where in the file the window begins
        self._at = 0  # where in the window the next block goes
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._map = self._mapped(self._window)
        except OSError:
            os.close(self._file)
            path.unlink(missing_ok=True)
            raise
        _open.add(self)
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
        gone = self._is_gone()
        self._end(spare=0)
        if gone:
            raise self._missing()

    def abandon(self) -> None:
        """The same where something is missing: the file keeps a torn end, which tells readers so."""
        self._end(spare=1)

    def release(self) -> None:
        """Let go of a file that another process writes; it stays as it is."""
        if self._file >= 0:
            self._map.close()
            os.close(self._file)
            self._file = -1
            self._size = 0

    def _end(self, spare: int) -> None:
        if self._file >= 0:
            with contextlib.suppress(OSError):  # a full disk must not hide what the test found
                self._map.close()
                os.ftruncate(self._file, self._base + self._at + spare)
            self.release()

    def _is_gone(self) -> bool:
        return self._file >= 0 and os.fstat(self._file).st_nlink == 0

    def _missing(self) -> OSError:
        return FileNotFoundError(errno.ENOENT, "the file was removed while it was written", str(self.path))

    def _advance(self, room: int) -> int:
        """Map the part of the file where the next `room` bytes go; returns where they go in it."""
        skip = self._at // _GRAIN * _GRAIN
        size = max(self._window, -(-(self._at - skip + room) // _GRAIN) * _GRAIN)
        self._map.close()
        self._base += skip
        self._at -= skip
        self._size = 0  # should the next step fail, nothing fits until it works
        if self._is_gone():
            raise self._missing()
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


_open: WeakSet[Segment] = WeakSet()


def _release_all() -> None:
    for segment in tuple(_open):
        segment.release()


if hasattr(os, "register_at_fork"):
    # A lock lasts until every process has closed the file: a child that outlives its parent would keep it.
    os.register_at_fork(after_in_child=_release_all)
