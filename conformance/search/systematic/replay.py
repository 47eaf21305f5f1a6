"""Replay files of the sweep: a spec, and the rules that its run violates."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from conformance.rules import Finding, judge
from conformance.run.case import Case
from conformance.run.specs import Spec
from conformance.search.replay import ReplayFile, read_replay
from conformance.search.systematic.shrink import SIMPLER


class Replay(ReplayFile[Spec, Case], kw_only=True):
    """What a file holds; `invariants` are those that were violated, with what happened."""

    simpler: ClassVar = SIMPLER

    spec: Spec
    invariants: dict[str, str]

    @property
    def plan(self) -> Spec:
        return self.spec

    @property
    def protocol(self) -> str:
        return self.spec.protocol

    @property
    def found(self) -> dict[str, str]:
        return self.invariants

    def judged(self, case: Case) -> tuple[Mapping[str, str], str]:
        return _by_name(judge(case)), ""

    def digest(self, case: Case) -> str:
        return fingerprint(case)

    def with_run(self, case: Case) -> Replay:
        return replay_of(self.client, self.mutant, case, judge(case))


def load(path: Path) -> Replay:
    """Read a file. Raises `UsageError`, see `read_replay`."""
    return read_replay(path, Replay)


def replay_of(client: str, mutant: str, case: Case, findings: list[Finding]) -> Replay:
    """A run as a replay."""
    return Replay(
        client=client,
        mutant=mutant,
        spec=case.spec,
        invariants=_by_name(findings),
        about=str(case.spec),
        print="" if case.slack_s else fingerprint(case),
    )


def _by_name(findings: list[Finding]) -> dict[str, str]:
    return {finding.name: finding.detail for finding in findings}


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
