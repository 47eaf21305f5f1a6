"""JavaScript: the adapter with its own ``node_modules``."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.clients.packages.cache import built, output_of
from conformance.clients.packages.package import Package


def listed(library: str) -> list[str]:
    """All versions."""
    found = json.loads(
        output_of(["npm", "view", library, "versions", "--json"], f"npm knows no versions of {library}")
    )
    return [found] if isinstance(found, str) else list(found)


def fetched(package: Package, version: str) -> Path:
    """The adapter with that version; what the lock file says of others stays. No package's script is run."""
    asked = f"{package.library}@{version}"
    wanted = asked if package.dependency == package.library else f"{package.dependency}@npm:{asked}"
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"]

    def build(folder: Path) -> None:
        output_of(["npm", "install", *options, wanted], f"npm cannot install {asked}", folder=folder)

    return built(package.folder, f"{package.dependency}-{version}", build)
