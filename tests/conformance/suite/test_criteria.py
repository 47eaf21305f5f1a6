"""Ids of criteria: short, stable, and one criterion each within a scenario."""

from __future__ import annotations

from collections import defaultdict

import pytest

from conformance.suite.criteria import checks_of, criteria_of
from conformance.suite.expect import ID_LENGTH, criterion_id
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario


def test_an_id_is_made_of_the_words() -> None:
    assert (
        criterion_id("The request ends as `timeout`, not earlier")
        == "the-request-ends-as-timeout-not-earlier"
    )
    long = criterion_id("one " * 40)
    assert len(long) <= ID_LENGTH and long.endswith("one")


@pytest.mark.parametrize("item", all_scenarios(), ids=lambda item: item.label)
def test_an_id_names_one_criterion_of_a_scenario(item: Scenario) -> None:
    words: dict[str, set[str]] = defaultdict(set)
    for check in checks_of(item):
        if check.words is not None:
            words[check.id].add(check.words)
        assert criterion_id(check.id) == check.id, f"{check.id!r}: small letters, digits and hyphens"
    assert not {name: texts for name, texts in words.items() if len(texts) > 1}, "give one of them another id"


def test_what_a_scenario_cannot_demand_is_no_criterion_of_it() -> None:
    [item] = [s for s in all_scenarios() if s.id == "RMQS-2.06"]
    known = criteria_of(item)
    for wanted in (
        "queryoffsetresponse-lost-rmqs-query-offset-ends-as-timeout",  # put together as the script runs
        "in-time",
        "setup-connect",
    ):
        assert known.has(wanted), wanted
    assert not known.has("no-answer-invented")
