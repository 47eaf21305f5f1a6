"""Replay files of chaos: a schedule, and the violated rules and anomalies of its run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from conformance.search.random.case import ChaosCase
from conformance.search.random.schedule import Schedule
from conformance.search.random.shrink import SIMPLER
from conformance.search.random.verdict import RunVerdict, verdict_on
from conformance.search.random.workload import SCRIPT
from conformance.search.random.workloads import KINDS
from conformance.search.replay import ReplayFile, read_replay
from fakebrokers.errors import UsageError
from fakebrokers.files import json_of

KIND = "chaos"


class ChaosReplay(ReplayFile[Schedule, ChaosCase], kw_only=True):
    """What a file holds.

    Attributes:
        contract: What had to hold of deliveries; "" for what the faults leave of the protocol's word.
        anomalies: Violated rules and anomalies, with what happened.
    """

    simpler: ClassVar = SIMPLER

    kind: Literal["chaos"] = "chaos"
    contract: str = ""
    schedule: Schedule
    anomalies: dict[str, str]

    @property
    def plan(self) -> Schedule:
        return self.schedule

    @property
    def protocol(self) -> str:
        return self.schedule.protocol

    @property
    def found(self) -> dict[str, str]:
        return self.anomalies

    @property
    def options(self) -> dict[str, str]:
        return {"contract": self.contract}

    def judged(self, case: ChaosCase) -> tuple[Mapping[str, str], str]:
        verdict = verdict_on(case)
        return verdict.sentences if verdict.fails else {}, str(verdict.word)

    def digest(self, case: ChaosCase) -> str:
        return case.digest

    def with_run(self, case: ChaosCase) -> ChaosReplay:
        return replay_of(self.client, self.mutant, case, verdict_on(case), contract=self.contract)


class _Kind(msgspec.Struct):
    """What is looked at first."""

    kind: Any = None


def is_chaos(path: Path) -> bool:
    """Whether a file is a replay of chaos, rather than of a sweep."""
    try:
        return bool(json_of(path, "a replay file", _Kind).kind == KIND)
    except UsageError:
        return False


def read_chaos(path: Path) -> ChaosReplay:
    """Read a file of which only the faults are wanted. Raises `UsageError`, see `read_replay`."""
    return read_replay(path, ChaosReplay)


def load(path: Path, workload: str = "") -> ChaosReplay:
    """Read a file.

    Args:
        workload: The ``module:Class`` that a file may name besides the workloads that come along.

    Raises:
        UsageError: See `read_replay`; or it names code of its own.
    """
    found = read_chaos(path)
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
