"""Failures of a search as files that are run again, one by one, and by hand.

A replay file names its client and holds a plan, what was found and what the run looks like. It never carries
a command or names code: a caller that replays against a client or with a workload of their own says which.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from conformance.run.case import Case
from conformance.run.simulated import NeedsProcess
from conformance.search.shrink import Simpler
from fakebrokers.errors import UsageError
from fakebrokers.files import json_of
from fakebrokers.proxy.recording import is_recording

REPLAY_VERSION = 1
SUFFIX = ".replay.json"

P = TypeVar("P")
C = TypeVar("C", bound=Case)
F = TypeVar("F", bound="ReplayFile[Any, Any]")


class ReplayFile(msgspec.Struct, Generic[P, C], kw_only=True):
    """What every file holds; each kind of plan adds its own members.

    Attributes:
        client: The name of a client, as ``--client`` takes it; "" for an adapter of the user's.
        mutant: The defect, where the client is the reference client with one.
        about: The plan in words.
        print: A digest of the run; "" where time was real, because nothing can promise it then.
        simpler: How plans of this kind become simpler.
    """

    simpler: ClassVar[Simpler[Any]]

    version: int = REPLAY_VERSION
    client: str
    mutant: str = ""
    about: str = ""
    print: str = ""

    @property
    @abstractmethod
    def plan(self) -> P:
        """What is run."""

    @property
    @abstractmethod
    def protocol(self) -> str:
        """Of the plan."""

    @property
    @abstractmethod
    def found(self) -> dict[str, str]:
        """By name, what was found and what happened."""

    @property
    def options(self) -> dict[str, str]:
        """What a client's `run` takes besides the plan, by name."""
        return {}

    @abstractmethod
    def judged(self, case: C) -> tuple[Mapping[str, str], str]:
        """What a run of a plan shows, by name, and how it ended, in a word; "" for one that needs none."""

    @abstractmethod
    def digest(self, case: C) -> str:
        """See `print`."""

    @abstractmethod
    def with_run(self: F, case: C) -> F:
        """The same of another run."""

    @property
    def name(self) -> str:
        """What the file is called: what was found first, and a digest of the plan."""
        first = next(iter(self.found), "none")
        return f"{first}-{hashlib.sha256(self.simpler.key(self.plan).encode()).hexdigest()[:8]}{SUFFIX}"

    def write(self, folder: Path) -> Path:
        """Write it into a folder. Returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.name
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")
        return path


class ReplayResult(msgspec.Struct):
    """How a replay went.

    Attributes:
        found: What was found again of what the file names, with what happened.
        same: Whether the run was the one that was written down.
        word: How it ended; "" where a plan has no word for that.
    """

    found: dict[str, str]
    same: bool
    word: str = ""

    @property
    def fails(self) -> bool:
        """Whether it failed again."""
        return bool(self.found)


def read_replay(path: Path, kind: type[F]) -> F:
    """Read a file of a kind. Raises `UsageError` where it is none, or of a version that is not known here."""
    if is_recording(path):
        raise UsageError(
            f"{path} is a recorded session: 'fakebrokers serve PROTOCOL --replay {path}' plays it"
        )
    found = json_of(path, "a replay file", kind)
    if found.version != REPLAY_VERSION:
        raise UsageError(f"{path}: expected version {REPLAY_VERSION}, got {found.version}")
    return found


def replay(file: ReplayFile[P, C], run: Callable[[P], C], tries: int = 1) -> ReplayResult:
    """Run a file's plan again, and see whether the same is found.

    Args:
        tries: Runs, at most, where they may come out otherwise: what most of them show counts.
    """
    runs: list[ReplayResult] = []
    while True:
        case = run(file.plan)
        shown, word = file.judged(case)
        found = {name: text for name, text in shown.items() if name in file.found}
        runs.append(ReplayResult(found, not file.print or file.digest(case) == file.print, word))
        alike = [one for one in runs if one.fails is runs[-1].fails]
        if 2 * len(alike) > tries:
            return runs[-1]


def shrunk(
    file: F, run: Callable[[Any], Case], here: Callable[[Any], Case] | None = None
) -> tuple[F | None, int]:
    """The smallest file that fails as this one does (None: it fails no more), and what it took, in runs.

    Args:
        here: Runs plans on virtual time, where `run` takes real time: the search is done there as far as it
            goes, and counts if what it comes to also fails in real time.
    """
    name = next(iter(file.found))

    def fails(plan: Any) -> bool:
        return name in file.judged(run(plan))[0]

    def fails_here(plan: Any) -> bool:
        assert here is not None
        try:
            return name in file.judged(here(plan))[0]
        except NeedsProcess:
            return False

    if here is not None and fails_here(file.plan):
        quick = file.simpler.search(fails_here)
        case = run(quick.smallest(file.plan))
        if name in file.judged(case)[0]:
            return file.with_run(case), quick.runs + 1
    if not fails(file.plan):
        return None, 1
    search = file.simpler.search(fails)
    return file.with_run(run(search.smallest(file.plan))), search.runs
