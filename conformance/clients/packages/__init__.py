"""Other versions of a bundled client's library, side by side: which there are, and how one of them is had.

Each of `pip`, `npm`, `go`, `maven` and `cargo` asks the package manager of its language, as the user has set
that up. What is fetched lies in `cache`, once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from conformance.clients.packages import cargo, go, maven, npm, pip
from conformance.clients.packages.cache import cache, checked, replaced
from conformance.clients.packages.package import Package
from fakebrokers.errors import UsageError

__all__ = ["Package", "cache", "checked", "fetched", "in_order", "released"]

#: How long a list of releases is taken as it was, in seconds.
FRESH_S = 24 * 3600.0


class _Manager(NamedTuple):
    """What a package manager can do.

    Attributes:
        listed: All versions of a library.
        fetched: The folder of a version; it is made where it is not there yet.
    """

    listed: Callable[[str], list[str]]
    fetched: Callable[[Package, str], Path]


_MANAGERS = {
    "pip": _Manager(pip.listed, lambda package, version: pip.fetched(package.library, version)),
    "npm": _Manager(npm.listed, npm.fetched),
    "go": _Manager(go.listed, go.fetched),
    "maven": _Manager(maven.listed, maven.fetched),
    "cargo": _Manager(cargo.listed, cargo.fetched),
}


def fetched(package: Package, version: str) -> Path:
    """The folder of that version: for pip what is put before other packages, else the adapter, built with it.

    Raises:
        UsageError: That is no version, or it cannot be had.
    """
    return _manager(package).fetched(package, checked(version))


def released(package: Package, further: Sequence[str] = ()) -> list[str]:
    """The releases, in the order of their numbers. A list that is a day old is asked for again, if it can be.

    Args:
        further: Versions that are wanted though they are no final release.

    Raises:
        UsageError: There is no list.
    """
    name = f"{package.manager}-{package.library.replace('/', '_')}.json"
    kept = cache().parent / "releases" / name
    versions = None
    if not kept.is_file() or time.time() - kept.stat().st_mtime > FRESH_S:
        try:
            versions = _manager(package).listed(package.library)
            replaced(kept, json.dumps(versions).encode())
        except UsageError:
            if not kept.is_file():
                raise
    if versions is None:
        versions = json.loads(kept.read_bytes())
    return in_order((each for each in versions if each.startswith(package.line)), further)


def in_order(versions: Iterable[str], further: Sequence[str] = ()) -> list[str]:
    """Final releases by number, and `further` ones among them; what has no number is left out."""
    numbered = {}
    for each in dict.fromkeys(versions):
        try:
            number = Version(each)
        except InvalidVersion:
            continue
        if each in further or not number.is_prerelease:
            numbered[each] = number
    return sorted(numbered, key=lambda each: numbered[each])


def _manager(package: Package) -> _Manager:
    if not package.manager:
        raise UsageError(
            f"{package.library} comes with its language, or with this suite: it has one version here"
        )
    return _MANAGERS[package.manager]
