"""A starting point for an adapter: a folder that passes the self-test before anything was changed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from conformance.adapter.profile import role_ops
from fakebrokers.errors import UsageError

#: Files to write per language: name in the new folder -> where it lies in the package `conformance`.
_FILES: Mapping[str, Mapping[str, str]] = {
    "python": {"adapter.py": "adapter/templates/adapter.py.in", "kit": "adapter/kit"},
    "node": {
        "adapter.mjs": "adapter/templates/adapter.mjs.in",
        "package.json": "adapter/templates/package.json.in",
        "kit.mjs": "adapters/_node/kit.mjs",
    },
    "go": {
        "main.go": "adapter/templates/main.go.in",
        "go.mod": "adapter/templates/go.mod.in",
        "kit": "adapter/kits/go",
    },
    "java": {
        "src/Main.java": "adapter/templates/Main.java.in",
        "pom.xml": "adapter/templates/pom.xml.in",
        "src/fakebrokers/kit": "adapter/kits/java",
    },
    "rust": {
        "src/main.rs": "adapter/templates/main.rs.in",
        "Cargo.toml": "adapter/templates/Cargo.toml.in",
        "kit": "adapter/kits/rust",
    },
}
LANGUAGES = tuple(_FILES)
COMMANDS: Mapping[str, str] = {
    "python": "python adapter.py",
    "node": "node adapter.mjs",
    "go": "./adapter",
    "java": "java -cp build/classes:build/lib/* Main",
    "rust": "target/debug/adapter",
}
#: What is copied of a kit.
_PARTS = (".py", ".go", ".java", ".rs", "Cargo.toml")
#: What has to be done before the command works.
BUILDS: Mapping[str, str] = {"go": "go build -o adapter", "java": "mvn -q compile", "rust": "cargo build"}


#: What the templates have, besides the ops that every adapter has.
_READY_OPS = frozenset({"next", "publish", "subscribe", "unsubscribe"})


def _ready_roles(protocol: str) -> list[str]:
    """The roles for which a template is complete; the others wait for the ops of their protocol."""
    return [role for role, ops in role_ops(protocol).items() if ops <= _READY_OPS]


def new(language: str, folder: Path, protocol: str) -> list[Path]:
    """Write the files; returns them in order. Raises `UsageError` if one of them exists."""
    package = files("conformance")
    roles = ", ".join(f'"{role}"' for role in _ready_roles(protocol))
    if language == "python" and roles:
        roles += ","
    wanted: dict[Path, str] = {}
    for name, source in _FILES[language].items():
        found = package.joinpath(source)
        if found.is_dir():
            parts = [part for part in found.iterdir() if part.name.endswith(_PARTS)]
            wanted |= {folder / name / part.name: part.read_text("utf-8") for part in parts}
        else:
            text = found.read_text("utf-8")
            wanted[folder / name] = text.replace("@PROTOCOL@", protocol).replace("@ROLES@", roles)
    taken = [str(path) for path in wanted if path.exists()]
    if taken:
        raise UsageError(f"already there: {', '.join(sorted(taken))}")
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return list(wanted)
