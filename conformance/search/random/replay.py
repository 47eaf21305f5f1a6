"""Failures of chaos as files that are run again, one by one, and by hand.

Such a file names its client and holds a schedule, what was found and what it looks like. It never carries a
command or names code: a caller that replays against a client of their own, or with a workload of their own,
    says
which.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from conformance.search.random.case import ChaosCase
from conformance.search.random.schedule import Schedule, to_json
from conformance.search.random.shrink import shrinking
from conformance.search.random.verdict import RunVerdict, Word, verdict_on
from conformance.search.random.workload import KINDS, SCRIPT
from conformance.search.systematic.replay import SUFFIX
from fakebrokers.errors import UsageError
from fakebrokers.files import json_of

REPLAY_VERSION = 1
KIND = "chaos"


class ChaosReplay(msgspec.Struct, kw_only=True):
    """What a file holds.

    Attributes:
        client: As ``--client`` takes it; "" for an adapter of the user's.
        mutant: The defect, where the client is the reference client with one.
        contract: What had to hold of deliveries; "" for what the faults leave of the protocol's word.
        anomalies: Violated invariants and anomalies, with what happened.
        about: The schedule in words.
        print: A digest of the journal; "" where time was real, because nobody can promise it then.
    """

    kind: Literal["chaos"] = "chaos"
    version: int = REPLAY_VERSION
    client: str
    mutant: str = ""
    contract: str = ""
    schedule: Schedule
    anomalies: dict[str, str]
    about: str = ""
    print: str = ""

    @property
    def name(self) -> str:
        """What the file is called: what was found first, and a digest of the schedule."""
        first = next(iter(self.anomalies), "none")
        return f"{first}-{hashlib.sha256(to_json(self.schedule).encode()).hexdigest()[:8]}{SUFFIX}"

    def write(self, folder: Path) -> Path:
        """Write it into a folder. Returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.name
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")
        return path


class ChaosReplayResult(msgspec.Struct):
    """How a replay went: what was found of what the file names, and whether the run was the same."""

    verdict: RunVerdict
    found: dict[str, str]
    same: bool

    @property
    def fails(self) -> bool:
        """Whether it failed again."""
        return bool(self.found)


class _Kind(msgspec.Struct):
    """What is looked at first."""

    kind: Any = None


def is_chaos(path: Path) -> bool:
    """Whether a file is a replay of chaos, rather than of a sweep."""
    try:
        return bool(json_of(path, "a replay file", _Kind).kind == KIND)
    except UsageError:
        return False


def load(path: Path, workload: str = "") -> ChaosReplay:
    """Read a file.

    Args:
        workload: The ``module:Class`` that a file may name besides the workloads that come along.

    Raises:
        UsageError: It is none, of a version that is not known here, or names code of its own.
    """
    found = json_of(path, "a replay file", ChaosReplay)
    if found.version != REPLAY_VERSION:
        raise UsageError(f"{path}: expected version {REPLAY_VERSION}, got {found.version}")
    asked = found.schedule.workload
    if asked not in (*KINDS, SCRIPT, workload):
        raise UsageError(
            f"{path}: its workload is {asked!r}, which does not come along: if you know that code, "
            f"say --workload {shlex.quote(asked)}"
        )
    return found


def replay_of(
    client: str, mutant: str, case: ChaosCase, verdict: RunVerdict, *, contract: str = ""
) -> ChaosReplay:
    """A run as a replay."""
    return ChaosReplay(
        client=client,
        mutant=mutant,
        contract=contract,
        schedule=case.schedule,
        anomalies=verdict.sentences,
        about=case.schedule.about,
        print=case.digest,
    )


def replay(found: ChaosReplay, run: Callable[[Schedule], ChaosCase]) -> ChaosReplayResult:
    """Run it again, and see whether the same is found."""
    case = run(found.schedule)
    verdict = verdict_on(case)
    named = {name: text for name, text in verdict.sentences.items() if name in found.anomalies}
    fails = verdict.word is Word.FAIL
    return ChaosReplayResult(verdict, named if fails else {}, not found.print or case.digest == found.print)


def shrunk(found: ChaosReplay, run: Callable[[Schedule], ChaosCase]) -> tuple[ChaosReplay | None, int]:
    """The smallest replay that fails as this one does (None: it fails no more), and what it took, in runs."""
    name = next(iter(found.anomalies))

    def fails(schedule: Schedule) -> bool:
        verdict = verdict_on(run(schedule))
        return verdict.word is Word.FAIL and name in verdict.names

    if not fails(found.schedule):
        return None, 1
    search = shrinking(fails)
    case = run(search.smallest(found.schedule))
    return replay_of(found.client, found.mutant, case, verdict_on(case), contract=found.contract), search.runs
