"""Folders and files on this machine or by URI (``s3://``, ``gs://``, ``hdfs://``, ``file://``)."""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import uuid4

from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_PASSWORD = re.compile(r"(?<=://)([^/?#:@]*:)[^/?#]*@")


def is_uri(place: str) -> bool:
    """Whether it names its file system."""
    return "://" in place


def located(place: str) -> tuple[FileSystem, str]:
    """The file system of a place, and its path there.

    Raises:
        UsageError: No library here knows such URIs.
    """
    import pyarrow as pa
    from pyarrow import fs

    if not is_uri(place):
        return fs.LocalFileSystem(), str(Path(place).absolute())
    try:
        found: tuple[FileSystem, str] = fs.FileSystem.from_uri(place)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, ImportError) as error:
        why = str(error).splitlines()[0].replace(place, shown(place))  # Hadoop's lists all that it tried
        raise UsageError(
            f"{shown(place)}: expected a folder, or a URI that pyarrow.fs can open: {why}{_hint(place)}"
        ) from None
    return found


def _hint(place: str) -> str:
    """What a kind of URI needs that pip does not bring."""
    if not place.startswith(("hdfs://", "viewfs://")):
        return ""
    return "; it takes JAVA_HOME, HADOOP_HOME, and CLASSPATH as `hadoop classpath --glob` prints it"


def shown(place: str) -> str:
    """The place without the password that a URI may have, for texts and files."""
    return _PASSWORD.sub(r"\1***@", place) if is_uri(place) else place


def joined(place: str, *names: str) -> str:
    """A place below another one; of a URI what follows ``?`` (an endpoint, a region) stays at the end.

    Names are names: in a URI their signs are escaped.
    """
    if not is_uri(place):
        return str(Path(place, *names))
    path, mark, query = place.partition("?")
    return posixpath.join(path, *map(quote, names)) + mark + query


def names_in(place: str) -> list[str]:
    """The files in a folder, sorted; none where there is no folder.

    Raises:
        UsageError: It cannot be read.
    """
    from pyarrow import fs

    system, path = located(place)
    try:
        found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    except OSError as error:
        raise UsageError(f"{shown(place)}: cannot be listed: {error}") from None
    return sorted(info.base_name for info in found if info.type != fs.FileType.Directory)


def read(place: str) -> bytes:
    """All bytes of a file."""
    system, path = located(place)
    with system.open_input_stream(path) as file:
        content: bytes = file.read()
    return content


def write(place: str, content: bytes) -> None:
    """Let a file appear with all of its content at once, in a folder that need not exist."""
    system, path = located(place)
    system.create_dir(posixpath.dirname(path), recursive=True)
    draft = f"{path}.{uuid4().hex[:8]}.tmp"
    try:
        with system.open_output_stream(draft, compression=None) as file:
            file.write(content)
        system.move(draft, path)
    except OSError:
        with suppress(OSError):
            system.delete_file(draft)
        raise


def is_there(place: str) -> bool:
    """Whether there is such a file or folder."""
    from pyarrow import fs

    system, path = located(place)
    return bool(system.get_file_info(path).type != fs.FileType.NotFound)


def remove(place: str) -> None:
    """Remove a file; that it is not there is no error."""
    if is_there(place):
        system, path = located(place)
        system.delete_file(path)


def removed(place: str) -> None:
    """Remove a folder with all that is in it; that it is not there is no error."""
    if is_there(place):
        system, path = located(place)
        system.delete_dir(path)
