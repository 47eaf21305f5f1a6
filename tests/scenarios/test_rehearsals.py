"""A client that cannot do something at all is not blamed for the fault that comes in a later step."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.adapter.kit import AdapterBase, Failure
from conformance.clients.mutants import matrix
from conformance.clients.reference.registry import reference
from conformance.results import Verdict
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario
from tests.scenarios.proofs import in_memory

IDS = ("NET-1.05", "NET-1.06", "NET-1.12", "NET-1.13", "NET-2.05", "NET-4.04")
OPENS_ONLY = ("NET-1.13",)
CONNECTS = ("connect",)
PUBLISHES = ("publish", "mol.call", "nats.request")
CONSUMES = ("subscribe", "mol.listen")


class Unable(AdapterBase):
    """Refuses some ops."""

    refused: tuple[str, ...]

    async def _perform(self, request: dict[str, Any]) -> Any:
        if request["op"] in self.refused:
            raise Failure("refused", "it never works")
        return await super()._perform(request)


def cases() -> list[Any]:
    """PZQ is left out: its scripts are its own, and do not rehearse."""
    found = [item for item in all_scenarios() if item.id in IDS and item.protocol != "pzq"]
    return [
        pytest.param(item, refused, id=f"{item.label}-{refused[0]}")
        for item in found
        if in_memory(item)
        for refused in ([CONNECTS] if item.id in OPENS_ONLY else [CONNECTS, PUBLISHES, CONSUMES])
    ]


@pytest.mark.parametrize(("item", "refused"), cases())
def test_who_cannot_do_it_without_the_fault_fails_before(
    item: Scenario, refused: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = type("UnableReference", (Unable, reference(item.protocol)), {"refused": refused})
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    found = matrix.run(item)
    assert (found.verdict, "setup" in found.tags) == (Verdict.FAIL, True), found.reason
