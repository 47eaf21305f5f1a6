"""A correct client of Moleculer that does something in its own manner fails no row for it, and no rule."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.mutants import matrix
from conformance.clients.mutants.matrix import GOOD
from conformance.clients.mutants.moleculer.mutants_joining import IgnoresNamespace
from conformance.clients.reference.kit import ClientError, adapter_of
from conformance.clients.reference.moleculer.pings import Pings
from conformance.clients.reference.registry import definition
from conformance.results import Verdict
from conformance.suite.load import all_scenarios
from tests.scenarios.moleculer_ways import WAYS


@pytest.mark.parametrize(
    ("row", "way"),
    [
        ("MOL-1.05", "nameless"),
        ("MOL-1.11", "says-null"),
        ("MOL-2.03", "says-null"),
        ("MOL-3.01 nats", "says-null"),
        ("MOL-3.02 nats", "says-null"),
        ("MOL-3.03", "says-null"),
        ("MOL-3.24", "cannot-read-error"),
        ("MOL-3.24", "guesses-success"),
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
    assert not [broken for broken in found.broken if broken.level == "MUST"]


class NeverPings(Pings):
    """Says that nothing has answered, and has asked nobody."""

    async def ping(self, node: str, timeout: float | None) -> tuple[dict[str, Any], float]:
        raise ClientError("timeout", "no PONG")


@pytest.mark.parametrize(
    ("scenario_id", "part", "criterion"),
    [
        ("MOL-1.02", IgnoresNamespace, "all-topics-begin-with-mol-dev"),
        ("MOL-2.10", NeverPings, "a-ping-reaches-the-peer"),
    ],
)
def test_a_defect_is_reported_as_what_it_is(
    scenario_id: str, part: type, criterion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = adapter_of(definition("moleculer"), [part])
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    [item] = [one for one in all_scenarios() if one.id == scenario_id]
    found = matrix.run(item)
    assert (found.verdict, found.criterion_id) == (Verdict.FAIL, criterion), found.reason
