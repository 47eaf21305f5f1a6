"""Mutants whose runs must show an anomaly in the journal; the reference client's must not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.clients.mutants.matrix import run
from conformance.clients.mutants.registry import find_mutant
from conformance.suite.load import all_scenarios
from conformance.suite.op_journal import open_run
from conformance.suite.scenario import Scenario
from fakebrokers.journal.reader import RunLog, read_run

#: Anomaly, scenario, protocol, mutant.
TELLTALE = (
    ("missed-heartbeat-ignored", "RMQS-5.02", "rabbitmq-stream", "silence-unnoticed"),
    ("missed-heartbeat-ignored", "NET-1.07", "rabbitmq-stream", "no-timers"),
    ("unseen", "RMQS-5.23", "rabbitmq-stream", "metadata-update-closes-all"),
    ("lost-write", "RMQS-3.20", "rabbitmq-stream", "empty-bodies-become-blank"),
    ("nonmonotonic-poll", "RMQS-4.13", "rabbitmq-stream", "positions-from-zero"),
    ("nonmonotonic-poll", "NET-2.10", "rabbitmq-stream", "subscribes-twice"),
    ("phantom-confirm", "RMQS-3.02", "rabbitmq-stream", "confirm-covers-all-before"),
    ("phantom-confirm", "RMQS-3.10", "rabbitmq-stream", "loss-means-stored"),
    ("phantom-confirm", "PZQ-1.09", "pzq", "lost-is-stored"),
    ("phantom-confirm", "NARC-2.17", "narconi", "close-means-stored"),
    ("stuck-request", "RMQS-3.03", "rabbitmq-stream", "no-confirm-timeout"),
    ("stuck-request", "NARC-2.04", "narconi", "no-time-outs"),
)


def the(scenario_id: str, protocol: str) -> Scenario:
    [found] = [each for each in all_scenarios() if (each.id, each.protocol) == (scenario_id, protocol)]
    return found


def log_of(item: Scenario, folder: Path, mutant: str | None = None) -> RunLog:
    """The journal of one run, of the reference client unless a mutant is named."""
    defect = find_mutant(item.protocol, mutant) if mutant else None
    client = mutant or "reference"
    note = open_run(folder, item, client=client, client_version="1", seed=0, profile="real")
    run(item, defect, note=note)
    note.close()
    return read_run(folder, note.run)


def logs_of(folder: Path, names: Sequence[tuple[str, str, str, str]] = TELLTALE) -> list[RunLog]:
    """Each mutant's run, and one of the reference client by the same scenario."""
    return [
        log_of(the(scenario_id, protocol), folder, client)
        for _, scenario_id, protocol, mutant in names
        for client in (mutant, None)
    ]
