"""Files that somebody names: read with a bound, and refused in one sentence."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from fakebrokers.errors import UsageError

T = TypeVar("T")

#: Bytes of a file at most; results of all bundled clients in full are a hundredth.
MOST = 1 << 29
#: Of one that people write.
MOST_BY_HAND = 1 << 24
_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError)


def content_of(path: Path, what: str, most: int = MOST) -> bytes:
    """All bytes of a file.

    Args:
        what: What it should be, such as ``a results file``.
        most: Bytes that it may have.

    Raises:
        UsageError: It is not there, no regular file (a pipe, a device), or too long.
    """
    try:
        about = path.stat()
        if stat.S_ISDIR(about.st_mode):
            raise UsageError(f"{path}: expected {what}, got a folder")
        if not stat.S_ISREG(about.st_mode):
            raise UsageError(f"{path}: expected {what}, got a pipe or a device: write it into a file first")
        if about.st_size > most:
            raise UsageError(f"{path}: expected {what} of at most {most} bytes, got {about.st_size}")
        return path.read_bytes()
    except (OSError, MemoryError) as error:
        why = error.strerror if isinstance(error, OSError) else "there is not enough memory"
        raise UsageError(f"{path}: expected {what}: {why}") from None


def json_of(path: Path, what: str, kind: type[T]) -> T:
    """A file of JSON as a value. Raises `UsageError`, as `content_of` does, and where it is none."""
    content = content_of(path, what)
    try:
        return msgspec.json.decode(content, type=kind)
    except _UNREADABLE as error:
        raise unfit(path, what, error) from None


def toml_of(path: Path, what: str, kind: type[T]) -> T:
    """A file of TOML as a value. Raises `UsageError`, as `content_of` does, and where it is none."""
    content = content_of(path, what, MOST_BY_HAND)
    try:
        return msgspec.convert(tomllib.loads(content.decode()), kind)
    except _UNREADABLE as error:
        raise unfit(path, what, error) from None


def unfit(path: object, what: str, error: Exception) -> UsageError:
    """What to say of a content that cannot be read."""
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return UsageError(f"{path}: expected {what}: {why}")
