"""What people see of a run: signs of life, failures that explain themselves, nothing of a client raw."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from conformance.results import RowResult, RuleResult, Step, Verdict
from conformance.suite.console import RunProgress, around, print_failure, print_results, print_rule, shortened
from conformance.suite.judge import Judgement
from conformance.suite.load import all_scenarios
from conformance.suite.present import replay_command
from fakebrokers.cli import main
from tests.conformance.suite.hostile import HOSTILE, results, row
from tests.eventually import PATIENCE_S
from tests.marked import PASSWORD

ROOT = Path(__file__).parents[3]
MUTANT = f"{sys.executable} -m conformance.clients.mutants rabbitmq-stream confirm-by-position"


def printed(*rows: RowResult, terminal: bool = False, width: int = 200) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None, highlight=False)
    print_results(console, results(*rows))
    return out.getvalue()


def test_nothing_of_a_client_reaches_the_terminal_raw() -> None:
    for verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.HARNESS_ERROR):
        for terminal in (False, True):
            text = printed(row(verdict), terminal=terminal)
            strange = {c for c in text if not c.isprintable() and c != "\n"}
            assert not strange, (verdict, strange)
            assert "\\x1b]0;owned\\x07\\u202e" in text
            assert "[red]x[/red]" in text  # no markup either


def test_the_adapters_own_trouble_comes_first() -> None:
    lines = printed(row()).splitlines()
    first = next(number for number, line in enumerate(lines) if "FAIL" in line)
    assert "broke its protocol" in lines[first + 1]
    assert "exit status 7" in lines[first + 2]
    (line,) = [
        line for line in printed(row(Verdict.INCONCLUSIVE)).splitlines() if "inconclusive RMQS" in line
    ]
    assert line.index("broke its protocol") < line.index("exit status 7") < line.index("is nacked")


def test_a_violated_rule_says_where_its_reasons_are() -> None:
    out = io.StringIO()
    rule = RuleResult(
        "beats", "pzq", "", "MUST", Verdict.FAIL, ("PZQ-1.01",), "5.1 s without", "Never silent."
    )
    print_rule(Console(file=out, width=200, color_system=None, highlight=False), rule)
    lines = out.getvalue().splitlines()
    assert lines[1] == "FAIL rule beats MUST · pzq 1 row: 5.1 s without"
    assert "  why         fakebrokers explain beats" in lines


def test_known_failures_are_counted_by_root_cause() -> None:
    causes = ["frames are read by field", "no time-out", "frames are read by field"]
    known = [msgspec.structs.replace(row(), cause=cause, tags=("expected",)) for cause in causes]
    assert "3 known failures from 2 root causes" in printed(*known)
    assert "root cause" not in printed(row())


def test_failures_by_one_criterion_are_counted_together() -> None:
    rows = [msgspec.structs.replace(row(), id=f"RMQS-3.0{n}", criterion="op-ends") for n in (1, 2, 3)]
    other = msgspec.structs.replace(row(), id="RMQS-3.04", criterion="in-time")
    known = msgspec.structs.replace(rows[2], cause="no time-out", tags=("expected",))
    assert "2 rows fail by op-ends: RMQS-3.01 RMQS-3.02\n" in printed(*rows[:2], known, other)
    assert "rows fail by" not in printed(rows[0], known, other)


def test_the_block_says_what_is_required_what_was_done_and_what_came() -> None:
    text = printed(row())
    for label, said in (
        ("source", "R7: Publish has no answer"),
        ("required", "`nacked`, no crash"),
        ("tolerated", "it waits"),
        ("not", "it hangs"),
        ("done to it", "Code 999"),
        ("actual", "the message is nacked"),
        ("again", "fakebrokers conform --adapter 'node a.mjs'"),
    ):
        assert f"  {label:<11} {said}" in text
    assert "client ──▶ fake  Publish" in text
    assert "client  ✗── fake  PublishConfirm 1  ⚡ " in text


def test_the_command_is_one_line_even_on_a_narrow_terminal() -> None:
    long = "fakebrokers conform --adapter 'node " + "a" * 300 + "' --protocol pzq --seed 0 PZQ-1.01"
    out = io.StringIO()
    print_failure(Console(file=out, width=80, force_terminal=True, color_system=None), row(replay=long))
    assert any(line == f"  again       {long}" for line in out.getvalue().splitlines())


def test_the_command_is_the_one_that_was_given() -> None:
    net = next(s for s in all_scenarios() if s.key == ("NET-1.01", "pzq", ""))
    command = "node 'my adapter.mjs' $HOME"
    again = shlex.split(replay_command(net, who=("--adapter", command), seed=3))
    options = ["--adapter", command, "--protocol", "pzq", "--seed", "3"]
    assert again == ["fakebrokers", "conform", *options, "NET-1.01"]
    varied = next(s for s in all_scenarios() if s.variant)
    assert f"--variant {varied.variant} " in replay_command(varied, who=("--client", "x"), seed=0)
    target = f"rabbitmq-stream://me:{PASSWORD}@127.0.0.1:5552"
    shown = replay_command(net, who=("--client", "x"), seed=0, target=target)
    assert "--target 'rabbitmq-stream://me:***@127.0.0.1:5552' " in shown
    guest = "rabbitmq-stream://guest:guest@127.0.0.1:5552"
    assert guest in replay_command(net, who=("--client", "x"), seed=0, target=guest)


def test_long_stories_and_diagrams_keep_both_ends_and_what_faults_touched() -> None:
    assert shortened(["a", "b"], 2) == ["a", "b"]
    assert shortened([str(n) for n in range(100)], 4) == [
        "0",
        "1",
        "          (96 steps left out)",
        "98",
        "99",
    ]
    steps = [Step(float(n), "in", str(n), fault="x" if n == 20 else "") for n in range(100)]
    kept = [int(step.kind) for step in around(steps, 14)]
    assert kept == [18, 19, 20, 21, 22, *range(91, 100)]
    assert around(steps[:3], 14) == steps[:3]


def test_lines_of_progress_where_there_is_no_terminal() -> None:
    came = threading.Event()

    class Out(io.StringIO):
        def write(self, text: str) -> int:
            written = super().write(text)
            if text.count(";") >= 2:
                came.set()
            return written

    out = Out()
    first, second = all_scenarios()[:2]
    with RunProgress(Console(file=out, width=200), 3, period_s=0.01) as progress:
        progress.begin(first)
        progress.begin(second)
        progress.end(Judgement(first, Verdict.FAIL))
        came.clear()
        assert came.wait(PATIENCE_S)
    said = out.getvalue().splitlines()[-1]
    assert "1 of 3; 1 fail; running " + second.label in said
    ended = out.getvalue()
    assert not [thread for thread in threading.enumerate() if thread.name == "progress"]
    assert out.getvalue() == ended


def conform(*more: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fakebrokers", "conform", "--adapter", MUTANT, *more],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_progress_is_no_part_of_the_document(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("conformance.suite.conform.RunProgress", partial(RunProgress, period_s=0.05))
    command = ["conform", "--adapter", MUTANT, "--protocol", "rabbitmq-stream", "--json", "RMQS-3.02"]
    with pytest.raises(SystemExit, match="1"):
        main(command)
    out, err = capfd.readouterr()
    assert [r["id"] for r in json.loads(out)["results"]] == ["RMQS-3.02"]
    assert " 0 of 1; running RMQS-3.02 (" in err


def test_nothing_sticks_when_it_is_interrupted() -> None:
    child = conform("--protocol", "rabbitmq-stream", "RMQS-5")
    assert child.stdout is not None
    for line in child.stdout:
        if "running RMQS-5" in line:
            break
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert child.returncode != 0
    assert HOSTILE not in out
