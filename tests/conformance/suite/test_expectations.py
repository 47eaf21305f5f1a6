"""Expectation files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.adapter.messages import Hello
from conformance.results import Result, Verdict
from conformance.suite.expectations import Expectations, Known, apply, causes, load, refreshed
from conformance.suite.judge import Judgement
from conformance.suite.load import all_scenarios
from fakebrokers.errors import UsageError

CRITERION = "the-reader-is-alive"
ROW = '[[known]]\nid = "RMQS-6.06"\nprotocol = "rabbitmq-stream"\n'
TEXT = """
version = 1
client = "rstream"

[[known]]
id = "RMQS-6.06"
protocol = "rabbitmq-stream"
cause = "the reader dies silently"
"""


def result(verdict: Verdict) -> Result:
    return Result("RMQS-6.06", "rabbitmq-stream", "", "MUST", verdict, reason="hang", criterion=CRITERION)


def known(**more: object) -> Expectations:
    entry = Known(id="RMQS-6.06", protocol="rabbitmq-stream", cause="the reader dies", **more)  # type: ignore[arg-type]
    return Expectations(known=(entry,))


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rstream.toml"
    path.write_text(TEXT)
    assert load(path).known[0].cause == "the reader dies silently"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version = 2", "expected version 1, got 2"),
        ("known = 3", "Expected `array`"),
        (ROW + 'cause = " "', "expected a cause"),
        (ROW + 'cause = "c"\ncommand = "rm"', "unknown field `command`"),
        ("[[known", "expected a file of known failures"),
        (ROW.replace("6.06", "6.66") + 'cause = "c"', "no scenario RMQS-6.66/rabbitmq-stream; did you mean"),
        (ROW + 'cause = "c"\nvariant = "nats"', "no scenario RMQS-6.06/rabbitmq-stream/nats"),
        (ROW + 'cause = "c"\ncriterion = "no-answr"', "RMQS-6.06 has no criterion 'no-answr'"),
        (ROW + f'cause = "c"\ncriterion = "{CRITERION[:-2]}"', f"did you mean '{CRITERION}'"),
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
    assert (marked.tags, marked.cause) == (("expected",), "the reader dies")
    assert "the reader dies" in marked.reason


@pytest.mark.parametrize("criterion", [CRITERION, ("in-time", CRITERION)])
def test_the_criterion_has_to_be_the_known_one(criterion: str | tuple[str, ...]) -> None:
    assert apply([result(Verdict.FAIL)], known(criterion=criterion))[0].tags == ("expected",)
    (other,) = apply([result(Verdict.FAIL)], known(criterion="in-time"))
    assert other.tags == () and other.cause == ""
    assert f"[{CRITERION}; known is only in-time]" in other.reason


def test_rows_of_one_cause_are_one_defect() -> None:
    marked = apply([result(Verdict.FAIL), result(Verdict.FAIL), result(Verdict.PASS)], known())
    assert causes(marked) == ["the reader dies"]


def test_a_pass_that_was_expected_to_fail_is_reported() -> None:
    assert apply([result(Verdict.PASS)], known())[0].tags == ("unexpected pass",)
    assert apply([result(Verdict.PASS)], known(sometimes=True))[0].tags == ()


@pytest.mark.parametrize(
    ("verdict", "criterion", "more", "said"),
    [
        (Verdict.FAIL, CRITERION, {}, True),
        (Verdict.FAIL, "in-time", {"criterion": CRITERION}, None),
        (Verdict.PASS, "", {}, False),
        (Verdict.NON_STRICT, "", {}, False),
        (Verdict.PASS, "", {"sometimes": True}, None),
        (Verdict.FAIL, CRITERION, {"sometimes": True}, True),
        (Verdict.NON_STRICT, "", {"verdict": Verdict.NON_STRICT}, True),
        (Verdict.PASS, "", {"verdict": Verdict.NON_STRICT}, None),
        (Verdict.PASS, "", {"variant": "nats"}, None),
        (Verdict.INCONCLUSIVE, "", {}, None),
    ],
)
def test_what_the_file_foresees(
    verdict: Verdict, criterion: str, more: dict[str, Any], said: bool | None
) -> None:
    file = known(**more)
    protocol = file.known[0].protocol
    [item] = [each for each in all_scenarios() if (each.id, each.protocol) == (file.known[0].id, protocol)]
    assert file.foresee(Judgement(item, verdict, criterion_id=criterion)) is said


def test_another_verdict_than_the_expected_one_is_no_known_failure() -> None:
    assert apply([result(Verdict.HARNESS_ERROR)], known())[0].tags == ()


def test_another_variant_is_another_row() -> None:
    assert apply([result(Verdict.FAIL)], known(variant="nats"))[0].tags == ()


@pytest.mark.parametrize(
    ("client", "version", "problem"),
    [
        ("rstream", "1.1.1", ""),
        ("rstream", "1.*", ""),
        ("", "", ""),
        ("rbfly", "1.1.1", "is about 'rbfly'"),
        ("rstream", "1.2.*", "is about rstream 1.2.*, and this is 1.1.1"),
    ],
)
def test_a_file_is_about_one_client_in_one_version(client: str, version: str, problem: str) -> None:
    hello = Hello("rstream-adapter", "rstream", "1.1.1", "python", ["rabbitmq-stream"], [], [])
    file = Expectations(client=client, client_version=version)
    if not problem:
        file.check_client(None, "", hello)
        return
    with pytest.raises(UsageError) as caught:
        file.check_client(Path("x.toml"), "", hello)
    assert problem in str(caught.value)


def test_the_criteria_of_a_run_are_put_into_a_file() -> None:
    text = TEXT + "sometimes = true\n\n" + ROW.replace("6.06", "6.07") + 'cause = "c"\n'
    once = refreshed(text, [result(Verdict.FAIL)])
    assert f'protocol = "rabbitmq-stream"\ncriterion = "{CRITERION}"\n' in once
    assert once.replace(f'criterion = "{CRITERION}"\n', "") == text
    twice = refreshed(once, [msgspec.structs.replace(result(Verdict.FAIL), criterion="in-time")])
    assert f'criterion = ["{CRITERION}", "in-time"]' in twice  # it fails sometimes by this, sometimes by that


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[3] / "ci/expectations").glob("*.toml")), ids=lambda path: path.stem
)
def test_the_files_in_the_tree_can_be_used(path: Path) -> None:
    found = load(path)
    assert found.client and found.client_version
    assert all(known.cause for known in found.known)
    assert "reason =" not in path.read_text()
