"""What ``fakebrokers analyze`` says of runs that are not whole."""

from __future__ import annotations

import pytest

from conformance.cli.analyze import report


def test_runs_that_are_not_whole_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    summary = {
        "rows": 3,
        "runs": 2,
        "broken_off": 1,
        "open": 0,
        "aside": [],
        "seconds": 1.0,
        "anomalies": {},
        "allowed": {},
        "out": "x",
    }
    report(summary)
    reported = capsys.readouterr().out
    assert "1 of 2 runs are not whole" in reported
    assert "No anomalies." not in reported
    report({**summary, "broken_off": 0})
    assert "No anomalies. Tables: x" in capsys.readouterr().out
