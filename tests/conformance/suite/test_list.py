"""``fakebrokers explain``: one scenario, a section, a family, a rule, and what was probably meant."""

from __future__ import annotations

import json

import pytest

from conformance.rules.sentences import rules
from conformance.suite.catalogue import families
from conformance.suite.load import requirements
from fakebrokers.cli import main


def ran(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[str, int]:
    """What a command prints, errors too, and its exit code."""
    with pytest.raises(SystemExit) as left:
        main(args)
    printed = capsys.readouterr()
    return printed.out + printed.err, int(left.value.code or 0)


@pytest.mark.parametrize("word", ["RMQS-3", "rmqs-3"])
def test_a_section_is_explained_by_its_scenarios(capsys: pytest.CaptureFixture[str], word: str) -> None:
    printed, code = ran(capsys, "explain", word)
    assert code == 0
    [title] = [section.title for section in families()["RMQS"].sections if section.id == "RMQS-3"]
    assert printed.startswith(f"RMQS-3 {title}")
    inside = [each for each in requirements().values() if each.section == "RMQS-3"]
    assert len(inside) > 10
    for each in inside:
        assert f"{each.id} {each.title}" in printed
        assert " ".join(each.passes.split()) in " ".join(printed.split())
    assert "RMQS-4." not in printed


def test_a_family_is_explained_by_its_sections(capsys: pytest.CaptureFixture[str]) -> None:
    printed, code = ran(capsys, "explain", "PZQ")
    assert code == 0
    assert printed.startswith(f"PZQ {families()['PZQ'].title}")
    for section in families()["PZQ"].sections:
        assert f"{section.id} {section.title}" in printed


@pytest.mark.parametrize("word", ["no-storm", "NO-STORM"])
def test_a_rule_is_explained_with_its_reasons(capsys: pytest.CaptureFixture[str], word: str) -> None:
    printed, code = ran(capsys, "explain", word)
    rule = rules()["no-storm"]
    assert code == 0
    assert printed.startswith("no-storm (a rule for all runs)  SHOULD\n")
    for text in (*rule.sentences, rule.why, *rule.rests_on, rule.example, rule.reason):
        assert text in printed
    assert "narconi" in printed


def test_several_are_explained_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    printed, code = ran(capsys, "explain", "RMQS-3.01", "no-storm")
    assert code == 0
    assert [printed.count(f"{name} ") > 0 for name in ("RMQS-3.01", "no-storm")] == [True, True]


def test_what_is_explained_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    printed, code = ran(capsys, "explain", "--json", "RMQS-3.01", "no-storm", "RMQS-3", "RMQS")
    scenario, rule, section, family = json.loads(printed)
    wanted = requirements()["RMQS-3.01"]
    assert code == 0
    assert (scenario["name"], scenario["level"], scenario["severity"], scenario["requirement"]) == (
        "RMQS-3.01", wanted.level, wanted.severity, wanted.passes,
    )  # fmt: skip
    assert (rule["level"], rule["why"], rule["why_level"]) == (
        "SHOULD", rules()["no-storm"].why, rules()["no-storm"].reason,
    )  # fmt: skip
    [inside] = [each for each in section["within"] if each["name"] == "RMQS-3.01"]
    assert (inside["title"], inside["requirement"]) == (wanted.title, wanted.passes)
    assert [each["name"] for each in family["within"]] == [each.id for each in families()["RMQS"].sections]


def test_a_rule_of_one_protocol_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert "applies to   moleculer\n" in ran(capsys, "explain", "streams-wait")[0]


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["explain", "RMQX-3"], "did you mean 'RMQS-3'?"),
        (["explain", "RMQS-3.0O"], "did you mean 'RMQS-3."),
        (["explain", "wire-ilegal"], "did you mean 'wire-legal'?"),
        (["mutants", "RMQX-3"], "did you mean 'RMQS-3'?"),
        (["conform", "--client", "reference-pzq", "PZQ-99"], "did you mean 'PZQ-"),
        (["conform", "--client", "rstraem"], "did you mean 'rstream'?"),
        (["sweep", "--client", "rstraem"], "did you mean 'rstream'?"),
        (["chaos", "--client", "rstraem"], "did you mean 'rstream'?"),
        (
            ["sweep", "--client", "reference", "--protocol", "pzq", "--mutant", "close-refusse"],
            "'close-refuses'?",
        ),
        (["chaos", "--client", "reference-pzq", "--workload", "scrpt", "--seeds", "1..1"], "mean 'script'?"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(
    capsys: pytest.CaptureFixture[str], args: list[str], hint: str
) -> None:
    printed, code = ran(capsys, *args)
    assert code == 64
    assert hint in printed
    assert len(printed) < 1200, "hundreds of words help nobody"


def test_all_rules_are_named_with_their_first_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    printed, code = ran(capsys, "explain", "rules", "--json")
    [found] = json.loads(printed)
    within = {each["name"]: each for each in found["within"]}
    assert (code, within.keys()) == (0, rules().keys())
    assert within["ack-needs-confirm"]["title"] == rules()["ack-needs-confirm"].sentences[0]
    assert within["ack-needs-confirm"]["level"] == "MUST"
