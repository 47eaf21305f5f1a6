"""The scenario reference is up to date."""

from __future__ import annotations

from conformance.suite.load import all_scenarios
from conformance.suite.reference import PLACE, reference


def test_the_file_is_what_the_scenarios_say() -> None:
    assert PLACE.read_text(encoding="utf-8") == reference(), "run: python -m conformance.suite.reference"


def test_every_scenario_is_in_it() -> None:
    text = reference()
    assert all(f"| {item.id} | {item.level} |" in text for item in all_scenarios())
