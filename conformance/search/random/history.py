"""The journal of a run: what the fake saw and what the client did, in one order, and what it promises."""

from __future__ import annotations

import hashlib
from bisect import bisect
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from conformance.clients.adapter.base import Adapter
from conformance.run.stored import rows_of
from conformance.search.random.case import ChaosCase, ChaosRun
from conformance.search.random.schedule import Schedule, to_json
from conformance.suite.op_journal import UNKNOWN, write_ops
from fakebrokers import __version__
from fakebrokers.journal import RunJournal
from fakebrokers.journal.reader import RunLog, read_run
from fakebrokers.journal.record import State
from fakebrokers.journal.rows import FrameRow

SCENARIO = "chaos"
IN_MEMORY = "~0"  #: how the name of a run ends that is kept nowhere


class KeptJournals(NamedTuple):
    """Where the journals of runs are kept.

    Attributes:
        traces: With all that passed, so that a run can be judged again.
    """

    folder: Path
    traces: bool = False


def open_journal(
    schedule: Schedule, kept: KeptJournals | None = None, *, client: str = "", client_version: str = ""
) -> RunJournal:
    """A journal for one run; in memory unless it is kept. Two runs on disk never share a name."""
    digest = hashlib.sha256(to_json(schedule).encode()).hexdigest()[:16]
    name = f"chaos@{schedule.protocol}@{digest}"
    return RunJournal(
        None if kept is None else kept.folder,
        name,
        traces=kept is not None and kept.traces,
        run=None if kept is not None else f"{name}{IN_MEMORY}",
        client=client,
        client_version=client_version,
        suite_version=__version__,
        protocol=schedule.protocol,
        scenario=SCENARIO,
        seed=schedule.plan_seed,
        faults=len(schedule.steps),
        contract=UNKNOWN,
    )


def write_history(
    journal: RunJournal, schedule: Schedule, adapter: Adapter, broker: Any, promised: str = ""
) -> None:
    """What went between runner and client, and the contract: as `promised`, or what the faults left of it."""
    write_ops(journal, ChaosRun(schedule.protocol), adapter.transcript.lines, broker.journal)
    if promised:
        journal.attributes(contract=promised)


def close_journal(journal: RunJournal, kept: KeptJournals | None, case: ChaosCase) -> None:
    """The run is over, and all of it is known; the case gets its history."""
    journal.trace(rows_of(case))
    journal.close()
    case.log = journal.log() if kept is None else read_run(kept.folder, journal.run)


def digest_of(log: RunLog) -> str:
    """A digest of all rows, the same for a run whose journal is kept and one whose is not.

    Notes are left out: addresses in memory differ from process to process. So is what the fake holds, which
    is recorded of some runs only.
    """
    rows, held = [], [row.seq for row in log.frames if row.kind == State.HOLDS]
    for each in (*log.frames, *log.ops):
        if isinstance(each, FrameRow) and each.kind == State.HOLDS:
            continue
        row = msgspec.to_builtins(each)
        row.pop("note", None)
        row["seq"] -= bisect(held, row["seq"])
        rows.append({**row, "run": row["run"].rpartition("~")[0] + IN_MEMORY})
    return hashlib.sha256(msgspec.json.encode(rows, order="sorted")).hexdigest()[:16]
