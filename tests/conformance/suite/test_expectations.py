"""Expectation files."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results import Result, Verdict
from conformance.suite.expectations import Expectations, Known, apply, load
from fakebrokers.errors import UsageError

TEXT = """
version = 1
client = "rstream"

[[known]]
id = "RMQS-6.06"
protocol = "rabbitmq-stream"
reason = "the reader dies silently"
"""


def result(verdict: Verdict) -> Result:
    return Result("RMQS-6.06", "rabbitmq-stream", "", "MUST", verdict, reason="hang")


def known(**more: object) -> Expectations:
    entry = Known(id="RMQS-6.06", protocol="rabbitmq-stream", reason="the reader dies", **more)  # type: ignore[arg-type]
    return Expectations(known=(entry,))


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rstream.toml"
    path.write_text(TEXT)
    assert load(path).known[0].reason == "the reader dies silently"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version = 2", "expected version 1, got 2"),
        ("known = 3", "Expected `array`"),
        ('[[known]]\nid = "A"\nprotocol = "p"\nreason = " "', "expected a reason"),
        ('[[known]]\nid = "A"\nprotocol = "p"\nreason = "r"\ncommand = "rm"', "unknown field `command`"),
        ("[[known", "expected a file of known failures"),
    ],
)
def test_a_wrong_file_is_refused_with_place_and_problem(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"wrong\.toml") as caught:
        load(path)
    assert problem in str(caught.value)


def test_a_known_failure_is_tagged_and_explained() -> None:
    (marked,) = apply([result(Verdict.FAIL)], known())
    assert marked.tags == ("expected",)
    assert "the reader dies" in marked.reason


def test_a_pass_that_was_expected_to_fail_is_reported() -> None:
    assert apply([result(Verdict.PASS)], known())[0].tags == ("unexpected pass",)
    assert apply([result(Verdict.PASS)], known(sometimes=True))[0].tags == ()


def test_another_verdict_than_the_expected_one_is_no_known_failure() -> None:
    assert apply([result(Verdict.HARNESS_ERROR)], known())[0].tags == ()


def test_another_variant_is_another_row() -> None:
    assert apply([result(Verdict.FAIL)], known(variant="nats"))[0].tags == ()
