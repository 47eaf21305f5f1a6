"""Go: the adapter's program, built with another version of the module."""

from __future__ import annotations

from pathlib import Path

from conformance.clients.packages.cache import built, output_of
from conformance.clients.packages.package import Package


def listed(library: str) -> list[str]:
    """All versions, without their ``v``."""
    out = output_of(
        ["go", "list", "-m", "-versions", f"{library}@latest"], f"go knows no versions of {library}"
    )
    return [each.removeprefix("v") for each in out.split()[1:]]


def fetched(package: Package, version: str) -> Path:
    """The adapter with that version."""
    asked = f"{package.library}@v{version}"

    def build(folder: Path) -> None:
        output_of(["go", "get", asked], f"go cannot get {asked}", folder=folder)
        command = ["go", "build", "-buildvcs=false", "-o", "build/adapter", "."]
        output_of(command, f"the adapter cannot be built with {asked}", folder=folder)

    return built(package.folder, version, build)
