"""From a scenario's run to anomalies: what a mutant does shows in its journal, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.checkers import Anomaly, check
from conformance.mutants.matrix import Mode, mode_of
from conformance.mutants.registry import protocols
from conformance.suite.load import all_scenarios
from fakebrokers.journal.reader import RunLog
from tests.conformance.telltale import TELLTALE, log_of, the


def blamed(log: RunLog) -> list[Anomaly]:
    return [anomaly for anomaly in check(log) if not anomaly.allowed]


@pytest.mark.parametrize(("anomaly", "scenario_id", "protocol", "mutant"), TELLTALE)
def test_a_mutant_gives_itself_away(
    anomaly: str, scenario_id: str, protocol: str, mutant: str, tmp_path: Path
) -> None:
    item = the(scenario_id, protocol)
    assert anomaly in {found.name for found in blamed(log_of(item, tmp_path, mutant))}
    assert blamed(log_of(item, tmp_path)) == []


def test_frames_and_ops_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    log = log_of(the("RMQS-5.02", "rabbitmq-stream"), tmp_path)
    rows = sorted([*log.frames, *log.ops, *log.metrics], key=lambda row: row.seq)
    times = [row.t_ns for row in rows]
    assert times == sorted(times) and times[0] < times[-1]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("protocol", protocols())
def test_nobody_blames_the_reference_client(protocol: str, tmp_path: Path) -> None:
    for item in all_scenarios():
        if item.protocol == protocol and mode_of(item) is Mode.MEMORY and not (item.alone or item.soak):
            assert blamed(log_of(item, tmp_path)) == [], item.label
