"""Python: each version lies in a folder that is put before the packages of this environment."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from conformance.clients.packages.cache import checked, made, output_of
from fakebrokers.errors import UsageError

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def listed(library: str) -> list[str]:
    """All versions that this Python can have."""
    out = output_of([*PIP, "index", "versions", library], f"pip knows no versions of {library}")
    found = re.search(r"^Available versions: (.*)$", out, re.MULTILINE)
    if found is None:
        raise UsageError(f"pip knows no versions of {library}")
    return [each.strip() for each in found[1].split(",")]


def fetched(library: str, version: str) -> Path:
    """The folder of that version, for this Python."""
    name = f"{library}-{checked(version)}-{sys.implementation.cache_tag}"
    return made(name, lambda folder: install(f"{library}=={version}", folder))


def install(requirement: str, folder: Path) -> None:
    """Install something, and what it needs, into a folder."""
    command = [*PIP, "install", "--quiet", "--target", str(folder), requirement]
    output_of(command, f"pip cannot install {requirement}")
