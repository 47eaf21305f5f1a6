"""Rust: the adapter's program, built with another version of the crate."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import tomllib
from pathlib import Path

from conformance.clients.packages.cache import built, cache, output_of
from conformance.clients.packages.package import Package
from fakebrokers.errors import UsageError

_ANY = """[package]
name = "any"
version = "1.0.0"
edition = "2021"

[lib]
path = "lib.rs"

[dependencies]
%s = "*"
"""


def listed(library: str) -> list[str]:
    """All versions that are not yanked: cargo has no command for them, but keeps the list it chooses from."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "Cargo.toml").write_text(_ANY % library)
        (Path(place) / "lib.rs").touch()
        output_of(["cargo", "generate-lockfile"], f"cargo knows no versions of {library}", folder=Path(place))
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    found = [path.read_bytes() for path in home.glob(f"registry/index/*/.cache/**/{library}")]
    versions = [version for content in found for version in _versions(content)]
    if not versions:
        raise UsageError(f"cargo knows no versions of {library}")
    return list(dict.fromkeys(versions))


def _versions(content: bytes) -> list[str]:
    """Of a file of cargo's: lines of JSON, between others, each ended by a zero."""
    lines = [json.loads(piece) for piece in content.split(b"\0") if piece.startswith(b"{")]
    return [line["vers"] for line in lines if not line["yanked"]]


def fetched(package: Package, version: str) -> Path:
    """The adapter with that version. What several of them need is built once, beside them."""
    asked = f"{package.library} {version}"

    def build(folder: Path) -> None:
        manifest = folder / "Cargo.toml"
        repin(manifest, package.library, version)
        name = rename(manifest, version)
        command = ["cargo", "build", "--quiet", "--target-dir", str(cache() / "cargo")]
        output_of(command, f"the adapter cannot be built with {asked}", folder=folder)
        (folder / "build" / "debug").mkdir(parents=True)
        program = cache() / "cargo" / "debug" / f"{name}-{version}".replace(".", "-")
        shutil.copy2(program, folder / "build" / "debug" / name)

    return built(package.folder, version, build)


def rename(manifest: Path, version: str) -> str:
    """Give the program a name of its own among those that are built in one folder; returns the old one."""
    text = manifest.read_text("utf-8")
    name: str = tomllib.loads(text)["package"]["name"]
    own = f"{name}-{version}".replace(".", "-")
    manifest.write_text(text.replace(f'name = "{name}"', f'name = "{own}"', 1), "utf-8")
    return name


def repin(manifest: Path, library: str, version: str) -> None:
    """Change the version of a dependency."""
    text = manifest.read_text("utf-8")
    pattern = rf'^({re.escape(library)} = (?:\{{.*?version = )?")[^"]*'
    manifest.write_text(re.sub(pattern, rf"\g<1>={version}", text, flags=re.MULTILINE), "utf-8")
