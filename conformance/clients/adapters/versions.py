"""Other versions of a bundled client's library, side by side: ``NAME==VERSION``.

Each lies in a folder of its own, which is put before the packages of this environment when the adapter
starts; it is fetched once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from fakebrokers.errors import UsageError

#: What may follow ``==``; it becomes part of a path and of a command.
_VERSION = re.compile(r"\d+[A-Za-z0-9.+!]*")


def cache() -> Path:
    """Where the folders are: ``$XDG_CACHE_HOME/fakebrokers/clients``, by default below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fakebrokers" / "clients"


def fetched(library: str, version: str) -> Path:
    """The folder of that version, for this Python; pip fills it where it is not there yet.

    Raises:
        UsageError: That is no version, or pip cannot get it.
    """
    if not _VERSION.fullmatch(version):
        raise UsageError(f"expected a version such as 1.2.0 behind ==, got {version!r}")
    folder = cache() / f"{library}-{version}-{sys.implementation.cache_tag}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetching-") as place:
        packages = Path(place) / "packages"
        _install(f"{library}=={version}", packages)
        if not folder.is_dir():  # another process may have been quicker
            shutil.move(packages, folder)
    return folder


def _install(requirement: str, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "--target", str(folder), requirement], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise UsageError(f"pip cannot install {requirement}: {said[-1].removeprefix('ERROR: ')}")
