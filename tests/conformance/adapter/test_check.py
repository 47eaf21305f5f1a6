"""The self-test passes an adapter that keeps the protocol, and names the defect of one that does not."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from conformance.adapter.check import Report, check

HERE = Path(__file__).parent
ENV = {"PYTHONPATH": str(HERE.parents[2])}


def report_on(*defect: str) -> Report:
    command = [sys.executable, str(HERE / "toy_adapter.py"), *defect]
    return asyncio.run(check(command, "rabbitmq-stream", env=ENV))


def test_a_good_adapter_passes() -> None:
    report = report_on()
    assert [check.problem for check in report.checks if not check.ok] == []
    assert report.ok
    assert report.as_json()["ok"] is True
    assert {row["name"] for row in report.as_json()["checks"]} >= {
        "hello",
        "bodies",
        "honesty",
        "end of input",
    }


@pytest.mark.parametrize(
    ("defect", "name", "problem"),
    [
        ("Liar", "honesty", "fakebrokers.no_such_op is not declared, so it must fail unsupported"),
        ("Boasting", "honesty", "declares capabilities that do not exist: teleport"),
        ("Miscounting", "order", "has n 6"),
        ("Twice", "order", "which is not open"),
        ("Garbling", "bodies", "came back as"),
        ("Incomplete", "complete", "not declared: subscribe"),
        ("Stubborn", "end of input", "it had to be killed"),
        ("Strict", "extra members", "what is that?"),
        ("Forgetful", "reset", "reset before"),
    ],
)
def test_each_defect_fails_its_own_check(defect: str, name: str, problem: str) -> None:
    report = report_on(defect)
    failed = {check.name: check.problem for check in report.checks if not check.ok}
    assert list(failed) == [name]
    assert problem in failed[name]


def test_an_adapter_that_drops_concurrent_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.adapter.check.DEADLINE_MS", 200.0)
    report = report_on("Serial")
    failed = {check.name: check.problem for check in report.checks if not check.ok}
    assert "10 of 100 failed, the first: state hang" in failed["concurrency"]


def test_without_a_protocol_it_finds_one_that_the_adapter_takes() -> None:
    report = asyncio.run(check([sys.executable, str(HERE / "toy_adapter.py")], env=ENV))
    assert (report.ok, report.protocol) == (True, "rabbitmq-stream")


def test_a_command_that_does_not_start() -> None:
    report = asyncio.run(check("no-such-program", "pzq"))
    assert [check.name for check in report.checks] == ["hello"]
    assert not report.ok
    assert report.hello is None
