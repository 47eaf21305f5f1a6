"""Failures as files that are run again, one by one, and by hand.

A replay file names its client and holds a spec, the findings and what they look like. It never carries a
command: a caller that replays against a client of their own says which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from conformance.rules import Finding, judge
from conformance.run.case import Case
from conformance.run.specs import Spec, to_json
from fakebrokers.errors import UsageError
from fakebrokers.files import json_of
from fakebrokers.proxy.recording import is_recording

REPLAY_VERSION = 1
SUFFIX = ".replay.json"


class Replay(msgspec.Struct, kw_only=True):
    """What a file holds.

    Attributes:
        client: The name of a client, as ``--client`` takes it; "" for an adapter of the user's.
        mutant: The defect, where the client is the reference client with one.
        invariants: Those that were violated, with what happened.
        about: The spec in words.
        print: A digest of what happened in the run, ports and times left out; "" where nobody can promise it.
    """

    version: int = REPLAY_VERSION
    client: str
    mutant: str = ""
    spec: Spec
    invariants: dict[str, str]
    about: str = ""
    print: str = ""

    @property
    def name(self) -> str:
        """What the file is called: the invariant, and a digest of the spec."""
        first = next(iter(self.invariants), "none")
        return f"{first}-{hashlib.sha256(to_json(self.spec).encode()).hexdigest()[:8]}{SUFFIX}"

    def write(self, folder: Path) -> Path:
        """Write it into a folder. Returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.name
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")
        return path


def load(path: Path) -> Replay:
    """Read a file. Raises `UsageError` where it is none, or of a version that is not known here."""
    if is_recording(path):
        raise UsageError(
            f"{path} is a recorded session: 'fakebrokers serve PROTOCOL --replay {path}' plays it"
        )
    found = json_of(path, "a replay file", Replay)
    if found.version != REPLAY_VERSION:
        raise UsageError(f"{path}: expected version {REPLAY_VERSION}, got {found.version}")
    return found


def replay_of(client: str, mutant: str, case: Case, findings: list[Finding]) -> Replay:
    """A run as a replay."""
    return Replay(
        client=client,
        mutant=mutant,
        spec=case.spec,
        invariants={finding.name: finding.detail for finding in findings},
        about=str(case.spec),
        print="" if case.slack_s else fingerprint(case),
    )


def fingerprint(case: Case) -> str:
    """A digest of what happened: who said which frame, how ops ended, which events came, in order."""
    said: list[Any] = [
        [seen.at.row, conn.name, seen.direction, type(seen.frame).__name__]
        for conn in case.conns.values()
        for seen in conn.frames
    ]
    said.sort(key=lambda row: int(row[0]))
    reported = [[done.op, done.result.word if done.result is not None else "open"] for done in case.ops]
    heard = [[heard.what, heard["what"]] for heard in case.events]
    return hashlib.sha256(msgspec.json.encode([said, reported, heard])).hexdigest()[:16]


class SweepReplayResult(msgspec.Struct):
    """How a replay went: the findings, and whether the run was the same as the one that was written down."""

    findings: list[Finding]
    same: bool

    @property
    def fails(self) -> bool:
        """Whether it failed again."""
        return bool(self.findings)


def replay(found: Replay, run: Callable[[Spec], Case], tries: int = 1) -> SweepReplayResult:
    """Run it again, and see whether the same invariants are violated.

    Args:
        tries: Runs, at most, where they may come out otherwise: what most of them show counts.
    """
    runs: list[SweepReplayResult] = []
    while True:
        runs.append(_once(found, run))
        alike = [one for one in runs if one.fails is runs[-1].fails]
        if 2 * len(alike) > tries:
            return runs[-1]


def _once(found: Replay, run: Callable[[Spec], Case]) -> SweepReplayResult:
    case = run(found.spec)
    findings = [finding for finding in judge(case) if finding.name in found.invariants]
    return SweepReplayResult(findings, not found.print or fingerprint(case) == found.print)
