"""A correct client of Moleculer that does something in its own manner fails no row for it, and no rule."""

from __future__ import annotations

import pytest

from conformance.clients.mutants import matrix
from conformance.clients.mutants.matrix import GOOD
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.registry import definition
from conformance.suite.load import all_scenarios
from tests.scenarios.moleculer_ways import WAYS


@pytest.mark.parametrize(
    ("row", "way"),
    [
        ("MOL-1.11", "says-null"),
        ("MOL-2.03", "says-null"),
        ("MOL-3.01 nats", "says-null"),
        ("MOL-3.02 nats", "says-null"),
        ("MOL-3.03", "says-null"),
        ("MOL-4.01", "says-null"),
    ],
)
def test_who_does_it_in_another_manner_passes(row: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, manner = WAYS[way]
    client = adapter_of(definition("moleculer"), parts)
    if manner is not None:
        client = type("Alternative", (manner, client), {})
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    scenario_id, _, variant = row.partition(" ")
    [item] = [one for one in all_scenarios() if one.key == (scenario_id, "moleculer", variant)]
    found = matrix.run(item, invariants=True)
    assert found.verdict in GOOD, found.reason
    assert not found.broken
