"""From a scenario's run to anomalies: what a mutant does shows in its journal, and nothing else does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.transcript import TranscriptLine
from conformance.clients.mutants.matrix import Mode, mode_of, run
from conformance.clients.mutants.registry import find_mutant
from conformance.clients.reference.registry import protocols
from conformance.results import Verdict
from conformance.rules.anomalies import Anomaly, check
from conformance.rules.anomalies.anomaly import NAMES, allowed_names
from conformance.suite.load import all_scenarios
from conformance.suite.op_journal import open_run, write_ops
from conformance.suite.present import to_result
from fakebrokers.journal.reader import RunLog, read_run
from fakebrokers.journal.run import LOGGED
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


@pytest.mark.parametrize("scenario_id", ["RMQS-7.11", "RMQS-8.03"])
def test_positions_of_several_partitions_and_behind_a_filter_have_gaps(
    scenario_id: str, tmp_path: Path
) -> None:
    log = log_of(the(scenario_id, "rabbitmq-stream"), tmp_path)
    reported = [op.value for op in log.ops if op.f == "deliver"]
    assert reported and None not in reported
    assert blamed(log) == []


def test_frames_and_ops_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    log = log_of(the("RMQS-5.02", "rabbitmq-stream"), tmp_path)
    rows = sorted([*log.frames, *log.ops, *log.metrics], key=lambda row: row.seq)
    times = [row.t_ns for row in rows]
    assert times == sorted(times) and times[0] < times[-1]


def test_a_result_names_its_run(tmp_path: Path) -> None:
    item = the("RMQS-3.06", "rabbitmq-stream")
    note = open_run(tmp_path, item, client="reference", client_version="1", seed=0, profile="real")
    judgement = run(item, note=note)
    assert to_result(judgement, client="reference", seed=0).run == note.run
    assert to_result(run(item), client="reference", seed=0).run == ""


@pytest.mark.parametrize(("mutant", "lines"), [("", 0), ("stray-confirm-stops-the-reader", 1)])
def test_what_a_client_logs_is_in_the_journal_of_a_run_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str, lines: int
) -> None:
    said = [(1.0, "GET http://me:s3cret@host/ failed")]
    monkeypatch.setattr(Adapter, "stderr_lines", lambda *_: said)
    item = the("RMQS-3.06", "rabbitmq-stream")
    note = open_run(tmp_path, item, client="c", client_version="1", seed=0, profile="real")
    judgement = run(item, find_mutant(item.protocol, mutant) if mutant else None, note=note)
    assert judgement.verdict is (Verdict.FAIL if lines else Verdict.PASS)
    found = [op.note for op in read_run(tmp_path, note.run).ops if op.f == LOGGED]
    assert found == ["GET http://me:***@host/ failed"] * lines


def test_what_is_no_line_of_the_protocol_is_noted_as_such(tmp_path: Path) -> None:
    item = the("RMQS-3.06", "rabbitmq-stream")
    note = open_run(tmp_path, item, client="c", client_version="1", seed=0, profile="real")
    broken = {"id": 1, "ok": True, "result": {"outcomes": [1]}}
    asked = {"id": 1, "op": "publish", "args": {"target": "q", "body": {"text": "a"}}}
    lines = [
        TranscriptLine(1, "out", asked),
        TranscriptLine(2, "in", broken),
        TranscriptLine(3, "in", b"what?"),
    ]
    write_ops(note, item, lines, None)
    note.close()
    log = read_run(tmp_path, note.run)
    assert [(op.f, op.outcome) for op in log.ops] == [
        ("publish", "invoke"),
        ("unreadable", "event"),
        ("unreadable", "event"),
    ]
    assert log.run.contract == "at-least-once ordered"


def test_the_row_of_a_run_tells_what_the_rules_go_by(tmp_path: Path) -> None:
    item = the("RMQS-6.09", "rabbitmq-stream")
    note = open_run(tmp_path, item, client="reference", client_version="1", seed=0, profile="real")
    judged = run(item, find_mutant("rabbitmq-stream", "resumes-behind-the-next"), note=note, invariants=True)
    row = read_run(tmp_path, note.run).run
    assert judged.verdict is Verdict.PASS
    assert row.findings == ("delivers-what-came",)
    assert row.ends and all(each.split()[1] in ("client", "broker") for each in row.ends)
    assert set(row.touched) <= {each.split()[0] for each in row.ends} | {"c1", "c2", "c3"} and row.touched
    assert (row.may, row.memory_peak) == ((), None)


def test_the_end_of_a_callback_is_written_down(tmp_path: Path) -> None:
    item = the("RMQS-3.06", "rabbitmq-stream")
    note = open_run(tmp_path, item, client="c", client_version="1", seed=0, profile="real")
    plan = {"mode": "event", "sleep_ms": 5}
    asked = {"id": 1, "op": "subscribe", "args": {"sub": "c1", "target": "q", "on_message": plan}}
    message = {"event": "message", "sub": "c1", "ref": "r", "target": "q", "body": {"b64": "YQ=="}}
    returned = {"event": "returned", "sub": "c1", "ref": "r", "raised": True}
    write_ops(
        note,
        item,
        [
            TranscriptLine(1, "out", asked),
            TranscriptLine(2, "in", message),
            TranscriptLine(3, "in", returned),
        ],
        None,
    )
    note.close()
    _, begin, end = read_run(tmp_path, note.run).ops
    assert (begin.f, end.f, end.outcome, end.note) == ("deliver", "returned", "event", "raised")
    assert (end.process, end.key, end.value) == (begin.process, begin.key, begin.value)


@pytest.mark.parametrize("position", [str(1 << 64), "9" * 5000])
def test_a_client_cannot_erase_its_own_evidence(position: str, tmp_path: Path) -> None:
    """A position that no log has costs that position; all around it is judged."""
    item = the("RMQS-3.06", "rabbitmq-stream")
    note = open_run(tmp_path, item, client="c", client_version="1", seed=0, profile="real")
    message = {"event": "message", "sub": "c1", "target": "q", "body": {"b64": "YQ=="}}
    reported = [message | {"position": place} for place in ("0", position, "0")]
    reported.append(message | {"position": "1", "target": {"no": "text"}})
    write_ops(note, item, [TranscriptLine(n, "in", line) for n, line in enumerate(reported)], None)
    note.close()
    log = read_run(tmp_path, note.run)
    assert [op.offset for op in log.ops] == [0, None, 0, 1]
    assert log.ops[1].note.endswith(f"{position[:80]} does not fit")
    assert (log.run.ended, log.run.torn) == (True, False)
    assert [each.name for each in check(log)] == ["nonmonotonic-poll"]


def test_a_run_that_could_not_be_written_down_is_no_verdict_on_the_client(tmp_path: Path) -> None:
    item = the("RMQS-3.06", "rabbitmq-stream")
    note = open_run(tmp_path / "j", item, client="c", client_version="1", seed=0, profile="real")
    shutil.rmtree(tmp_path / "j")
    judgement = run(item, note=note)
    assert judgement.verdict is Verdict.HARNESS_ERROR
    assert "cannot write the journal: the file was removed" in judgement.reason


def test_a_run_that_was_broken_off_accuses_nobody_of_what_faults_may_have_done(tmp_path: Path) -> None:
    item = the("RMQS-3.06", "rabbitmq-stream")
    note = open_run(tmp_path, item, client="c", client_version="1", seed=0, profile="real")
    note.close()
    allowed = allowed_names(read_run(tmp_path, note.run).run.contract)
    assert set(NAMES) - allowed == {"missed-heartbeat-ignored", "stuck-request"}


@pytest.mark.full
@pytest.mark.parametrize("protocol", protocols())
def test_nobody_blames_the_reference_client(protocol: str, tmp_path: Path) -> None:
    for item in all_scenarios():
        if item.protocol == protocol and mode_of(item) is Mode.MEMORY and not (item.alone or item.soak):
            assert blamed(log_of(item, tmp_path)) == [], item.label


@pytest.mark.parametrize(
    "library", ["@rabbitmq/stream", "-x", ".NET client", "Ünï", "\x1b[2J", "l" * 500, "@"]
)
def test_a_library_may_have_any_name(tmp_path: Path, library: str) -> None:
    [item] = [one for one in all_scenarios() if one.id == "RMQS-1.01"]
    note = open_run(tmp_path, item, client=library, client_version="", seed=0, profile="real")
    note.close(verdict="pass", faults=0)
    assert list(tmp_path.glob(f"{note.run}*"))
