"""Every rule explains itself, in words of the field."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import conformance.rules
from conformance.rules import INVARIANTS
from conformance.rules.sentences import Rule, rules
from fakebrokers.protocol import protocol_names

CHECKS = Path(conformance.rules.__file__).parent

#: Words of our own for which the field has others (reported, after, is open, delivered, the client, sends).
OURS = re.compile(
    r"\b(told|tells?|telling|behind|stands?|stood|nobody|somebody|whoever|whatever|surfaces?|surfaced|stages?"
    r"|scenes?|stations?|bench|rooms?|subjects?|traces?|heard|handed|parting|deaf|says?|said|saying|goodbyes?"
    r"|hang up|hangs up|mend|mends|mended|prints?|words?|befalls?|turned away)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("rule", rules().values(), ids=list(rules()))
def test_each_rule_has_all_parts(rule: Rule) -> None:
    texts = [*rule.sentences, rule.why, *rule.rests_on, rule.example]
    assert rule.rests_on and all(texts)
    assert all(text.endswith(".") for text in texts), texts
    assert [word for text in [*texts, rule.reason] for word in OURS.findall(text)] == []


@pytest.mark.parametrize("rule", rules().values(), ids=list(rules()))
def test_each_rule_names_protocols_that_there_are(rule: Rule) -> None:
    assert set(rule.protocols) <= set(protocol_names())
    assert all(
        re.match(r"[A-Z][\w ]+: |all\b|elsewhere: |common sense: |SHOULD", text) for text in rule.rests_on
    )


def test_what_is_asked_for_the_sake_of_others_is_a_should_and_has_its_reason() -> None:
    should = {name for name, rule in rules().items() if rule.level == "SHOULD"}
    assert should == {
        "asks-what-it-does-not-know",
        "callbacks-apart",
        "gone-is-reported",
        "no-storm",
        "not-in-step",
        "pauses-begin-anew",
        "pauses-between-attempts",
        "spreads-its-questions",
        "tells-its-deadline",
        "written-in-order",
    }
    assert {name for name, rule in rules().items() if rule.reason} == should
    assert all(each.level == rules()[each.name].level for each in INVARIANTS.values())


def test_a_rule_is_read_from_its_docstring() -> None:
    rule = rules()["id-reuse"]
    assert rule.sentences == (
        "The id of a request is not used for another one while it has no answer.",
        "The id of a message is not given to another one on the same connection while its outcome is open.",
    )
    assert rule.why.startswith("The answer to one request ends another")
    assert rule.rests_on[0] == "RabbitMQ Stream: correlation ids (docs/protocols/rabbitmq-stream.md, 2)."
    assert len(rule.rests_on) == 4
    assert rule.example == "QueryOffset has id 7 of a Metadata that has no answer yet."
    assert (rule.level, rule.reason, rule.protocols) == ("MUST", "", ())
    assert rules()["streams-wait"].protocols == ("moleculer",)
    assert len(rules()["delivers-what-came"].sentences) == 9


def test_what_it_rests_on_for_one_protocol() -> None:
    rule = rules()["id-reuse"]
    assert rule.clauses("rabbitmq-stream") == rule.rests_on[:1]
    assert rule.clauses("pzq") == rule.rests_on[-1:]
    legal = rules()["wire-legal"]
    assert legal.clauses("pzq") == (legal.rests_on[2], legal.rests_on[-1])
    bundled = ("blazingmq", "moleculer", "narconi", "pzq", "rabbitmq-stream")  # tests have more
    assert all(rule.clauses(each) for rule in rules().values() for each in rule.protocols or bundled)


def test_results_have_the_sentence_alone() -> None:
    assert INVARIANTS["id-reuse"].about == rules()["id-reuse"].sentences[0]


def sentences(path: Path) -> Iterator[str]:
    """The texts of a module that are no docstrings and have several words: what rules report."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
        if is_text and " " in node.value.strip():
            yield node.value


def test_what_is_reported_is_in_words_of_the_field() -> None:
    found = [
        f"{path.name}: {text}"
        for path in sorted(CHECKS.glob("*.py"))
        for text in sentences(path)
        if OURS.search(text)
    ]
    assert found == []
