"""Files that somebody names, read with a bound; how ours of JSON look; folders that one command has."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fakebrokers.errors import ResourceError, UsageError

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


def toml_of(path: Path, what: str) -> dict[str, Any]:
    """A file of TOML. Raises `UsageError`, as `content_of` does, and where it is none."""
    content = content_of(path, what, MOST_BY_HAND)
    try:
        return tomllib.loads(content.decode())
    except _UNREADABLE as error:
        raise unfit(path, what, error) from None


def value_of(path: Path, what: str, data: object, kind: type[T]) -> T:
    """What a file holds as a value. Raises `UsageError` where it is none."""
    try:
        return msgspec.convert(data, kind)
    except _UNREADABLE as error:
        raise unfit(path, what, error) from None


def unfit(path: object, what: str, error: Exception) -> UsageError:
    """What to say of a content that cannot be read."""
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return UsageError(f"{path}: expected {what}: {why}")


def by_rows(document: Mapping[str, Any]) -> str:
    """A document as JSON, with a line for each row of its tables: what changes one row changes one line."""
    return "{" + ",\n".join(f"{json.dumps(name)}: {_rows(table)}" for name, table in document.items()) + "}\n"


def _rows(table: Any) -> str:
    if isinstance(table, Mapping):
        rows = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in table.items()]
        return "{\n" + ",\n".join(rows) + "\n}"
    if isinstance(table, list):
        return "[\n" + ",\n".join(map(json.dumps, table)) + "\n]"
    return json.dumps(table)


@contextmanager
def reserved(folder: Path) -> Iterator[None]:
    """Make a folder, and keep other commands out of it for as long as the block lasts.

    The system lets go of it whatever becomes of the process.

    Raises:
        UsageError: Another one writes into it.
        ResourceError: Nobody can write there.
    """
    import fcntl  # POSIX, as all that is judged here

    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ResourceError(f"{folder}: cannot write there: {error.strerror}") from None
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            problem = "another fakebrokers writes into it: wait until it has ended, or name another folder"
            raise UsageError(f"{folder}: {problem}") from None
        except OSError:
            pass  # a file system without locks on folders
        yield
    finally:
        os.close(place)
