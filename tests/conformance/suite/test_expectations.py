"""Expectation files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.adapter.messages import Hello
from conformance.invariants import Finding
from conformance.results import Result, RuleResult, Verdict
from conformance.suite.expectations import Expectations, Known, apply, apply_rules, causes, load, refreshed
from conformance.suite.judge import Judgement
from conformance.suite.load import all_scenarios
from fakebrokers.errors import UsageError

CRITERION = "the-reader-is-alive"
ROW = '[[known]]\nid = "RMQS-6.06"\nprotocol = "rabbitmq-stream"\n'
RULE = '[[known]]\nrule = "wire-legal"\nprotocol = "moleculer"\ncause = "c"\n'
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
        (
            ROW + 'cause = "c"\nrule = "beats"',
            "expected either an id or a rule in each row, got 'RMQS-6.06' and",
        ),
        ("[[known]]\nprotocol = 'pzq'\ncause = 'c'", "either an id or a rule in each row, got neither"),
        (RULE.replace("legal", "leagl"), "there is no rule 'wire-leagl'; did you mean 'wire-legal'"),
        (RULE + 'rows = ["MOL-1.99"]', "wire-legal: there is no row MOL-1.99; did you mean"),
        (RULE + 'criterion = "in-time"', "wire-legal: a rule has no criteria, got in-time"),
    ],
)
def test_a_wrong_file_is_refused_with_place_and_problem(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"wrong\.toml") as caught:
        load(path)
    assert problem in str(caught.value)


def test_a_criterion_that_nobody_declares_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "known.toml"
    path.write_text(ROW + f'cause = "c"\ncriterion = ["{CRITERION[:-2]}", "in-time"]')
    assert load(path).known[0].criteria == (CRITERION[:-2], "in-time")
    said = f"RMQS-6.06 has no criterion {CRITERION[:-2]!r}; did you mean {CRITERION!r}"
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"warning: {path}: {said}") and err.count("\n") == 1
    warned: list[str] = []
    load(path, warned.append)
    assert [f"warning: {each}\n" for each in warned] == [err]


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


def judgement(verdict: Verdict, *rules: str, criterion: str = "") -> Judgement:
    [item] = [each for each in all_scenarios() if each.id == "RMQS-6.06"]
    return Judgement(
        item, verdict, criterion_id=criterion, findings=tuple(Finding(rule, "?") for rule in rules)
    )


@pytest.mark.parametrize(
    ("entry", "is_known"),
    [
        ({"rule": "beats"}, True),
        ({"rule": "beats", "rows": ("RMQS-6.06", "RMQS-1.01")}, True),
        ({"rule": "beats", "rows": ("RMQS-1.01",)}, False),
        ({"rule": "wire-legal"}, False),
        ({"rule": "beats", "protocol": "pzq"}, False),
        ({"id": "RMQS-6.06", "criterion": ("beats", "wire-legal")}, True),  # as files before 0.3 say it
        ({"id": "RMQS-6.06"}, True),
        ({"id": "RMQS-6.06", "criterion": CRITERION}, False),
        ({"id": "RMQS-1.01"}, False),
    ],
)
def test_a_violated_rule_is_known_by_its_name_and_its_row(entry: dict[str, Any], is_known: bool) -> None:
    file = Expectations(known=(Known(**{"protocol": "rabbitmq-stream", "cause": "c", **entry}),))
    assert [each.name for each in file.news(judgement(Verdict.PASS, "beats"))] == ["beats"] * (not is_known)


def test_a_known_failure_explains_what_rules_found_in_its_run() -> None:
    file = known(criterion=CRITERION)
    assert file.news(judgement(Verdict.FAIL, "beats", criterion=CRITERION)) == []
    assert len(file.news(judgement(Verdict.FAIL, "beats", criterion="in-time"))) == 1


def test_a_row_that_only_names_rules_says_nothing_of_the_verdict() -> None:
    file = known(criterion="beats")
    assert file.foresee(judgement(Verdict.PASS)) is None
    assert apply([result(Verdict.PASS)], file)[0].tags == ()
    assert file.foresee(judgement(Verdict.FAIL, criterion="beats")) is True  # may be called so, too


def rule(*rows: str) -> RuleResult:
    return RuleResult("beats", "rabbitmq-stream", "", "MUST", Verdict.FAIL, rows, "silent for 9 s")


def test_a_rule_that_is_known_in_some_rows_is_split() -> None:
    entry = Known(rule="beats", protocol="rabbitmq-stream", rows=("RMQS-1.01",), cause="no timer")
    rows = apply([result(Verdict.FAIL)], known(criterion=CRITERION))
    found = apply_rules([rule("RMQS-1.01", "RMQS-2.01", "RMQS-6.06")], Expectations(known=(entry,)), rows)
    assert [(one.rows, one.tags, one.cause, one.is_new) for one in found] == [
        (("RMQS-1.01",), ("expected",), "no timer", False),
        (("RMQS-2.01",), (), "", True),
        (("RMQS-6.06",), ("expected",), "the reader dies", False),  # explained by the row
    ]
    assert causes([*rows, *found]) == ["the reader dies", "no timer"]


@pytest.mark.parametrize(
    ("entry", "verdict", "surprises"),
    [
        ({"rows": ("RMQS-6.06",)}, Verdict.PASS, 1),
        ({"rows": ("RMQS-6.06",)}, Verdict.INCONCLUSIVE, 0),
        ({"rows": ("RMQS-6.06", "RMQS-1.01")}, Verdict.PASS, 0),  # the other row was not run
        ({"rows": ("RMQS-6.06",), "sometimes": True}, Verdict.PASS, 0),
        ({}, Verdict.PASS, 0),
    ],
)
def test_a_rule_that_no_row_violates_any_more(
    entry: dict[str, Any], verdict: Verdict, surprises: int
) -> None:
    file = Expectations(known=(Known(rule="beats", protocol="rabbitmq-stream", cause="c", **entry),))
    found = apply_rules([], file, [result(verdict)])
    assert [one.tags for one in found] == [("unexpected pass",)] * surprises


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
    warned: list[str] = []
    found = load(path, warned.append)
    assert warned == []
    assert found.client and found.client_version
    assert all(known.cause for known in found.known)
    assert "reason =" not in path.read_text()
