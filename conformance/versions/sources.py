"""Where the versions of a client come from: the registry of its language, or a checkout."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapters import registry
from conformance.clients.packages import pip, released
from conformance.clients.packages.cache import output_of
from fakebrokers.errors import UsageError


class Source(Protocol):
    """Versions of a client.

    Attributes:
        name: Of the client.
        protocols: What it speaks; empty if nobody knows.
    """

    name: str
    protocols: list[str]

    def versions(self) -> list[str]:
        """All of them, in order."""

    def command(self, version: str) -> list[str]:
        """What starts the adapter with that version. `UsageError` if it cannot be had."""


def refused(source: Source, version: str, protocol: str) -> str:
    """Why a version cannot be driven; empty if its adapter says hello."""

    async def start() -> None:
        adapter = ProcessAdapter(source.command(version), protocol)
        try:
            await adapter.start()
        finally:
            await adapter.kill()

    try:
        asyncio.run(start())
    except (AdapterFailed, UsageError) as error:
        return in_a_line(error)
    return ""


def in_a_line(error: Exception) -> str:
    """What an error says, without the middle of a traceback and the folders where it was."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    reasons = [line for line in lines[1:] if re.match(r"[\w.]*(Error|Exception)\b", line)] or lines[1:]
    words = f"{lines[0].rstrip(':')}: {reasons[-1].strip()}" if reasons else lines[0]
    return re.sub(r"(?<![\w/])/(?:[^\s/:]+/)+", "", re.sub(r" \(/[^)]*\)", "", words))


class Releases:
    """What a bundled client's library has released.

    Args:
        name: Of the client, as ``--client`` takes it, without a version.
        further: Versions that are wanted though they are no final release.
    """

    def __init__(self, name: str, further: Sequence[str] = ()) -> None:
        self._client = registry.find(name)
        self._further = further
        self.name = self._client.name
        self.protocols = self._client.protocols

    def versions(self) -> list[str]:
        return released(self._client.package, self._further)

    def command(self, version: str) -> list[str]:
        found = registry.find(f"{self.name}=={version}")
        if not found.runnable:
            raise UsageError(f"{found.asked} cannot run here: {'; '.join(found.missing)}")
        return _with_env(found.env, found.command)


class Installed:
    """The one version of a client that is here."""

    def __init__(self, client: registry.Client) -> None:
        self._client = client
        self.name = client.name
        self.protocols = client.protocols

    def versions(self) -> list[str]:
        return [self._client.version or self._client.tested]

    def command(self, version: str) -> list[str]:
        if not self._client.runnable:
            raise UsageError(f"{self.name} cannot run here: {'; '.join(self._client.missing)}")
        return _with_env(self._client.env, self._client.command)


class Checkout:
    """The commits of a repository, each in a folder of its own. Use it as a context manager: it removes them.

    Args:
        commits: ``GOOD..BAD``.
        build: A command that is run in each folder; empty if there is nothing to build.
        adapter: The command of the adapter, run in that folder; None for that of `client`.
        client: A bundled client in Python: the library is installed from the folder, after `build`.
        where: A folder of the repository.
    """

    def __init__(
        self, commits: str, build: str, adapter: str | None, client: str | None, where: Path | None = None
    ) -> None:
        found = re.fullmatch(r"(?!-)([^\s.](?:\.?[^\s.])*)\.\.([^\s.](?:\.?[^\s.])*)", commits)
        if found is None:
            raise UsageError(f"--git: expected GOOD..BAD, got {commits!r}")
        self._ends = found[1], found[2]
        self._build = build
        self._adapter = shlex.split(adapter) if adapter is not None else []
        self._client = registry.find(client) if client is not None else None
        if self._client is not None and self._client.package.manager != "pip":
            raise UsageError(
                f"--git with --client is for clients in Python; for {client}, give its --adapter"
            )
        self._where = (where or Path.cwd()).resolve()
        self._place = Path()
        self._made: dict[str, list[str] | UsageError] = {}
        self.name = self._client.name if self._client is not None else self._where.name
        self.protocols = self._client.protocols if self._client is not None else []

    def __enter__(self) -> Checkout:
        self._place = Path(tempfile.mkdtemp(prefix="fakebrokers-bisect-"))
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._place, ignore_errors=True)
        self._git("worktree", "prune")

    def _git(self, *words: str) -> str:
        return output_of(["git", "-C", str(self._where), *words], f"git {words[0]} fails").strip()

    def versions(self) -> list[str]:
        good, bad = (self._git("rev-parse", "--verify", "--short", f"{end}^{{commit}}") for end in self._ends)
        between = self._git(
            "rev-list", "--first-parent", "--reverse", "--abbrev-commit", f"{good}..{bad}"
        ).splitlines()
        if not between:
            raise UsageError(f"--git: there are no commits from {self._ends[0]} to {self._ends[1]}")
        return [good, *between]

    def command(self, version: str) -> list[str]:
        """What starts it. A commit is built once."""
        if version not in self._made:
            try:
                self._made[version] = self._prepared(version)
            except UsageError as error:
                self._made[version] = error
        made = self._made[version]
        if isinstance(made, UsageError):
            raise made
        return made

    def _prepared(self, version: str) -> list[str]:
        folder = self._place / version
        self._git("worktree", "add", "--detach", "--force", str(folder), version)
        if self._build:
            output_of(["sh", "-c", self._build], f"--build fails in {version}", folder=folder)
        if self._client is None:
            return ["env", "-C", str(folder), *self._adapter]
        packages = self._place / f"{version}-packages"
        pip.install(str(folder), packages)
        paths = (str(packages), self._client.env["PYTHONPATH"])
        return _with_env({"PYTHONPATH": os.pathsep.join(paths)}, self._client.command)


def _with_env(env: dict[str, str], command: Sequence[str]) -> list[str]:
    return ["env", *(f"{name}={value}" for name, value in env.items()), *command] if env else list(command)
