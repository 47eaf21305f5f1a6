"""Every message has one outcome, whether or not the client says of which message it speaks."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.registry import reference, without_sockets
from conformance.rules import judge
from conformance.run.inprocess import run, runner
from conformance.run.specs import Spec

SPECS = [Spec("narconi", "unwaited"), Spec("pzq", "unwaited"), Spec("rabbitmq-stream", "publish")]


def repeating(protocol: str) -> type[AdapterBase]:
    """The correct client, which reports each outcome twice."""

    class Repeating(reference(protocol)):  # type: ignore[misc] # found by its name
        def emit(self, event: str, **fields: Any) -> None:
            super().emit(event, **fields)
            if event == "outcome":
                super().emit(event, **fields)

    return without_sockets(Repeating)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.protocol)
def test_a_second_outcome_is_found(spec: Spec) -> None:
    assert {finding.name for finding in judge(run(repeating(spec.protocol), spec))} == {"one-outcome"}
    assert judge(runner(spec.protocol)(spec)) == []


def silent(protocol: str) -> type[AdapterBase]:
    """The correct client, which reports no outcome of what it does not wait for."""

    class Silent(reference(protocol)):  # type: ignore[misc] # found by its name
        def emit(self, event: str, **fields: Any) -> None:
            if event != "outcome":
                super().emit(event, **fields)

    return without_sockets(Silent)


@pytest.mark.parametrize("spec", SPECS[:2], ids=lambda spec: spec.protocol)
def test_an_outcome_that_is_never_reported_is_found(spec: Spec) -> None:
    found = judge(run(silent(spec.protocol), spec))
    assert {finding.name for finding in found} == {"answer-counts"}
    assert "no outcome of message" in found[0].detail
