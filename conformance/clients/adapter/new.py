"""A starting point for an adapter: a folder that passes the self-test before anything was changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

from conformance.clients.adapter.profile import core_ops, profile_of, role_ops
from conformance.clients.adapter.stubs import called, stubs
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

#: What the templates themselves have for protocols whose clients publish and subscribe; the kits have `next`.
_MESSAGING = frozenset({"next", "publish", "settle", "subscribe", "unsubscribe"})
#: A line that begins a part of a template which is for some protocols only, and the one that ends it.
_IF = re.compile(r"\s*(?://|#) @if (!?)(\w+)$")
_END = re.compile(r"\s*(?://|#) @end$")


def new(language: str, folder: Path, protocol: str) -> list[Path]:
    """Write the files; returns them in order. Raises `UsageError` if one of them exists."""
    package = files("conformance.clients")
    wanted: dict[Path, str] = {}
    for name, source in _FILES[language].items():
        found = package.joinpath(source)
        if found.is_dir():
            parts = [part for part in found.iterdir() if part.name.endswith(_PARTS)]
            wanted |= {folder / name / part.name: part.read_text("utf-8") for part in parts}
        else:
            wanted[folder / name] = _filled_in(found.read_text("utf-8"), language, protocol)
    taken = [str(path) for path in wanted if path.exists()]
    if taken:
        raise UsageError(f"already there: {', '.join(sorted(taken))}")
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return list(wanted)


def _filled_in(template: str, language: str, protocol: str) -> str:
    """A template as it is for a protocol: its roles, and a function for each op that they need."""
    profile = profile_of(protocol)
    roles = ", ".join(f'"{role}"' for role in profile.roles)
    needed = set[str]().union(*role_ops(protocol).values()) - core_ops()
    words = {
        "messaging": "publish" in needed,
        "settles": profile.settles,
        "parts": profile.parts,
        "addresses": bool(profile.addresses),
    }
    ours = [name for name in profile.ops if name in needed - _MESSAGING]
    lines = list(_chosen(template.split("\n"), words))
    for mark, made in (("@STUBS@", stubs), ("@CALLED@", called)):
        place = next((at for at, line in enumerate(lines) if mark in line), None)
        if place is not None:
            lines[place : place + 1] = made(language, protocol, ours)
    text = "\n".join(lines)
    if language != "python":
        text = re.sub(r"\n{3,}", "\n\n", text)
    address = profile.addresses[0] if profile.addresses else ""
    for mark, value in (
        ("@PROTOCOL@", protocol),
        ("@ROLES@", f"{roles}," if language == "python" else roles),
        ("@SETTLES@", "manual" if profile.settles else "none"),
        ("@ADDRESS@", address),
    ):
        text = text.replace(mark, value)
    return text


def _chosen(lines: list[str], words: Mapping[str, bool]) -> Iterator[str]:
    """The lines that are for this protocol."""
    kept = [True]
    for line in lines:
        if found := _IF.match(line):
            kept.append(kept[-1] and words[found[2]] is not bool(found[1]))
        elif _END.match(line):
            kept.pop()
        elif kept[-1]:
            yield line
