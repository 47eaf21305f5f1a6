"""A correct client of Narconi that does something in its own manner fails no row for it, and no rule."""

from __future__ import annotations

import pytest

from conformance.mutants import matrix
from conformance.mutants.matrix import GOOD
from conformance.reference.kit import adapter_of
from conformance.reference.registry import definition
from conformance.suite.load import all_scenarios
from tests.scenarios import narconi_manners as manners


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        pytest.param("NARC-1.17", [manners.RepeatsWithGet], id="a-301-followed-by-get"),
        pytest.param("NARC-2.02", [manners.GoesOnWithoutSubProtocol], id="no-sub-protocol-in-the-answer"),
        pytest.param("NARC-2.21", [manners.OnlyText], id="metadata-refused-unless-it-is-text"),
        pytest.param("NARC-3.02 seed", [manners.BodiesAreBinary], id="a-body-in-a-text-frame"),
        pytest.param(
            "NARC-3.18", [manners.CalledOnTheReader, manners.ReadsInTurn], id="a-callback-that-blocks-reading"
        ),
    ],
)
def test_who_does_it_in_another_manner_passes(
    row: str, parts: list[type], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = adapter_of(definition("narconi"), parts)
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    scenario_id, _, variant = row.partition(" ")
    key = (scenario_id, "narconi", variant)
    [item] = [one for one in all_scenarios() if one.key == key]
    found = matrix.run(item, invariants=True)
    assert found.verdict in GOOD, found.reason
    assert not found.broken
