"""Where fetched versions are, and how they get there: whole or not at all, whoever else does the same."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fakebrokers.errors import UsageError
from fakebrokers.interrupts import interruptible

#: What may be a version; it becomes part of a path and of a command.
_VERSION = re.compile(r"\d+[A-Za-z0-9.+!-]*")
#: Where the adapters are, and what several of them share, as they name it.
_ADAPTERS = Path(__file__).parents[1] / "adapters"
_KITS = Path(__file__).parents[1] / "adapter" / "kits"
_MADE = shutil.ignore_patterns("node_modules", "build", "__pycache__")


def cache() -> Path:
    """Where the folders are: ``$XDG_CACHE_HOME/fakebrokers/clients``, by default below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fakebrokers" / "clients"


def checked(version: str) -> str:
    """The version. `UsageError` if it is none."""
    if not _VERSION.fullmatch(version):
        raise UsageError(f"expected a version such as 1.2.0 after ==, got {version!r}")
    return version


def made(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of that name in the cache.

    Args:
        make: Makes it where it is not there yet. What it leaves when it fails, or is interrupted, is removed.
    """
    folder = cache() / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with interruptible(), tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetching-") as place:
        whole = Path(place) / "whole"
        make(whole)
        try:
            whole.rename(folder)
        except OSError:  # another process was quicker
            if not folder.is_dir():
                raise
    return folder


def replaced(path: Path, content: bytes) -> None:
    """Write a file that others may read at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)


def built(folder: str, version: str, build: Callable[[Path], None]) -> Path:
    """A copy of an adapter, built with another version of its library.

    The copy lies beside one of what adapters share, as here. It is made anew where either has changed.

    Args:
        folder: Of the adapter.
        build: Gets the copy.
    """
    adapter = Path(folder)
    shared = {adapter: f"adapters/{adapter.name}", _KITS: "adapter/kits"}
    rest = (path for path in sorted(adapter.parent.glob("_*")) if path.is_dir())
    shared |= {path: f"adapters/{path.name}" for path in rest}

    def make(whole: Path) -> None:
        for source, place in shared.items():
            shutil.copytree(source, whole / place, ignore=_MADE, dirs_exist_ok=True)
        build(whole / "adapters" / adapter.name)

    name = f"{adapter.name}-{version}-{_digest(shared)}"
    return made(name, make) / "adapters" / adapter.name


def _digest(folders: Mapping[Path, str]) -> str:
    """What the files in them are, in ten letters."""
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            if path.is_file() and not {"node_modules", "build", "__pycache__"} & set(inside.parts):
                found.update(f"{inside}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:10]


def output_of(
    command: Sequence[str], what: str, *, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """What a package manager prints. Nothing that it has started is left when this is interrupted.

    Args:
        what: What is asked of it, for the error.
        env: To be added to the environment.

    Raises:
        UsageError: It is not there, or fails; the message has its last words.
    """
    with _started(command, what, folder, env) as process:
        out, err = process.communicate()
    if process.returncode:
        raise UsageError(f"{what}: {_last_words(out, err)}")
    return out


def _last_words(out: str, err: str) -> str:
    lines = [line.strip() for line in (*out.splitlines(), *err.splitlines()) if line.strip()]
    errors = [
        line for line in lines if re.match(r"(npm error (?!A complete log)|\[?error)", line, re.IGNORECASE)
    ]
    errors = [line for line in lines if line.startswith("package `")] or errors  # cargo says why only there
    said = (errors[:1] if errors else lines[-1:]) or ["no reason given"]
    return re.sub(r"^(npm error|\[?ERROR\]?:?)\s*", "", said[0], flags=re.IGNORECASE)


@contextmanager
def _started(
    command: Sequence[str], what: str, folder: Path | None, env: Mapping[str, str] | None
) -> Iterator[subprocess.Popen[str]]:
    if shutil.which(command[0]) is None:
        raise UsageError(f"{what}: {command[0]} is not on the PATH")
    process = None
    try:
        with _signals_later():  # else there is a moment in which nobody knows what has to be ended
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        yield process
    except BaseException:
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        raise


@contextmanager
def _signals_later() -> Iterator[None]:
    """Ctrl-C and SIGTERM are raised after the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    former = {number: signal.signal(number, lambda at, _: came.append(at)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)
