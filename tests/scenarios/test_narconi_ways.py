"""A correct client of Narconi that does something in its own manner fails no row for it, and no rule."""

from __future__ import annotations

import pytest

from conformance.clients.mutants import matrix
from conformance.clients.mutants.matrix import GOOD
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.registry import definition
from conformance.suite.load import all_scenarios
from tests.scenarios.narconi_ways import WAYS


@pytest.mark.parametrize(
    ("row", "way"),
    [
        ("NARC-1.19", "subscribes-later"),
        ("NARC-3.25", "subscribes-later"),
        ("NET-1.07", "subscribes-later"),
        ("NET-1.09", "refuses-meanwhile"),
        ("NET-3.03", "subscribes-later"),
        ("NARC-1.17", "repeats-with-get"),
        ("NARC-2.02", "no-sub-protocol"),
        ("NARC-2.14", "one-at-a-time"),
        ("NARC-2.14", "refuses-meanwhile"),
        ("NARC-2.21", "only-text"),
        ("NARC-2.27", "refuses-meanwhile"),
        ("NARC-3.02 seed", "bodies-are-binary"),
        ("NARC-3.14 real", "errors-are-reasons"),
        ("NARC-3.18", "called-on-the-reader"),
    ],
)
def test_who_does_it_in_another_manner_passes(row: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, manner = WAYS[way]
    client = adapter_of(definition("narconi"), parts)
    if manner is not None:
        client = type("Alternative", (manner, client), {})
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    scenario_id, _, variant = row.partition(" ")
    key = (scenario_id, "narconi", variant)
    [item] = [one for one in all_scenarios() if one.key == key]
    found = matrix.run(item, invariants=True)
    assert found.verdict in GOOD, found.reason
    assert not found.broken
