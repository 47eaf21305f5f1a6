"""Which ids a scenario's criteria can have."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from inspect import signature
from pathlib import Path

import pytest

from conformance.suite.declared import declared_by
from conformance.suite.expect import ID_LENGTH, Expect
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario

SCRIPTS = Path(__file__).parents[3] / "scenarios"
#: Where the words stand among the arguments of the methods of `Expect`.
PLACES = {
    name: list(known).index("criterion" if "criterion" in known else "what")
    for name in vars(Expect)
    if not name.startswith("_") and callable(getattr(Expect, name))
    for known in [signature(getattr(Expect, name)).parameters]
    if "id" in known
}
ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def scenario_called(id: str) -> Scenario:
    return next(item for item in all_scenarios() if item.id == id)


@pytest.mark.parametrize(
    ("scenario", "criterion"),
    [
        ("RMQS-2.06", "queryoffsetresponse-lost-rmqs-query-offset-ends-as-timeout"),  # of a template
        ("RMQS-2.06", "querypublishersequenceresponse-lost-rmqs-query-sequence"),  # which is cut off
        ("NARC-1.16", "project-gold-queue-is-refused"),  # where nothing is left of the last case
        ("PZQ-1.02", "n-of-n-messages-came-in-n-s"),  # by the name of a module
        ("NET-1.01", "no-error-event-no-reconnect"),  # of the subject
        ("RMQS-2.06", "in-time"),
        ("RMQS-2.06", "setup-connect"),
    ],
)
def test_a_criterion_of_the_scenario_is_declared(scenario: str, criterion: str) -> None:
    assert declared_by(scenario_called(scenario)).has(criterion)


@pytest.mark.parametrize(
    "criterion", ["no-answer-invented", "queryoffsetresponse-lost-rmqs-query-offset-end"]
)
def test_what_a_scenario_cannot_demand_is_no_criterion_of_it(criterion: str) -> None:
    assert not declared_by(scenario_called("RMQS-2.06")).has(criterion)


def checks(script: ast.AST) -> Iterator[tuple[str, str]]:
    """The words and the ids of the criteria in it that are written out."""
    for node in ast.walk(script):
        if not (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PLACES
        ):
            continue
        named = {each.arg: each.value for each in node.keywords}
        match node.args[PLACES[node.func.attr] - 1 :], named.get("id"):
            case [ast.Constant(value=str(words)), *_], ast.Constant(value=str(id)):
                yield words, id


@pytest.mark.parametrize(
    "path", sorted(SCRIPTS.rglob("*.py")), ids=lambda path: str(path.relative_to(SCRIPTS))
)
def test_an_id_names_one_criterion_of_a_script(path: Path) -> None:
    for script in ast.parse(path.read_text(encoding="utf-8")).body:
        words: dict[str, set[str]] = defaultdict(set)
        for text, id in checks(script):
            words[id].add(text)
            assert ID.fullmatch(id) and len(id) <= ID_LENGTH, f"{id!r}: small letters, digits and hyphens"
        several = {id: texts for id, texts in words.items() if len(texts) > 1}
        assert not several, "give one of them another id"
