"""What hatchling asks while it builds a wheel: there are two, which need each other in the same version.

``fakebrokers`` is built from the top of the tree, ``fakebrokers-suite`` from ``conformance``. An editable
installation of the first has everything from the checkout, and needs no second one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilder

#: What is in the suite, as if it were built from the top of the tree.
_SUITE = {
    "packages": ["conformance", "scenarios"],
    "exclude": ["/conformance/pyproject.toml"],
    "force-include": {"docs/findings": "conformance/known-findings"},  # reports quote them
}


class Together(BuildHookInterface[Any]):
    """Adds the other distribution to the dependencies, and to the suite its files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called once for each wheel; `version` is ``standard`` or ``editable``."""
        own = self.metadata.version
        if self.metadata.name == "fakebrokers-suite":
            build_data["dependencies"].append(f"fakebrokers[suite]=={own}")
            build_data["force_include"] |= _files(Path(self.root).parent)
        elif version != "editable":
            extras = self.metadata.core.optional_dependencies
            build_data["dependencies"] += [
                f"fakebrokers-suite=={own}; extra == '{extra}'"
                for extra, needed in extras.items()
                if set(extras["suite"]) <= set(needed)
            ]


def _files(top: Path) -> dict[str, str]:
    """The files of the suite, and where they are in the wheel; what git ignores is left out."""
    project = {"name": "fakebrokers-suite", "version": "0"}
    targets = {"wheel": _SUITE}
    config = {"project": project, "tool": {"hatch": {"build": {"targets": targets}}}}
    found = WheelBuilder(str(top), config=config).recurse_included_files()
    return {file.path: file.distribution_path for file in found}
