"""A client of Narconi that leaves a lost publishing connection to the application fails nothing for it."""

from __future__ import annotations

import pytest

from conformance.clients.mutants import matrix
from conformance.clients.mutants.matrix import GOOD
from conformance.clients.reference.kit import ReferenceAdapter, adapter_of
from conformance.clients.reference.registry import definition
from conformance.suite.load import all_scenarios
from tests.scenarios.narconi_ways import Left

#: The server ends the publishing connection, and the application publishes again.
IDS = (
    *("NARC-2.11", "NARC-2.14", "NARC-2.27", "NARC-3.27"),
    *("NET-1.09", "NET-3.01", "NET-4.02", "NET-4.04"),
)


class Adapter(ReferenceAdapter):
    """Declares that only what finds the server is made anew."""

    reconnects: tuple[str, ...] = ("locator",)


@pytest.mark.parametrize("scenario_id", IDS)
def test_who_connects_anew_when_asked_passes(scenario_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = type("Client", (Adapter, adapter_of(definition("narconi"), (Left,))), {})
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    items = [one for one in all_scenarios() if (one.protocol, one.id) == ("narconi", scenario_id)]
    assert items
    for item in items:
        found = matrix.run(item, invariants=True)
        assert found.verdict in GOOD, found.reason
        assert not found.broken
