"""A library is asked for no argument that it does not have: with one time-out for all calls, say."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.adapter.kit import AdapterBase, Failure
from conformance.clients.reference.registry import reference, without_sockets
from conformance.rules import judge
from conformance.run.inprocess import run
from conformance.run.specs import Spec
from conformance.search.random.draw import Setting, draw
from conformance.search.random.run import run as run_schedule
from conformance.search.random.verdict import Word, verdict_on
from fakebrokers.faults import Realism

PROTOCOL = "moleculer"


class OfOneTimeout(AdapterBase):
    """Its calls take no time-out of their own; the node has one."""

    lacks = "mol.call.timeout_ms"

    async def _perform(self, request: dict[str, Any]) -> Any:
        if request["op"] == "mol.call" and "timeout_ms" in request["args"]:
            raise Failure("unsupported", "a call has no time-out of its own")
        return await super()._perform(request)


def client() -> type[AdapterBase]:
    return type("OfOneTimeoutReference", (OfOneTimeout, without_sockets(reference(PROTOCOL))), {})


@pytest.mark.parametrize("name", ["call", "both"])
def test_a_base_asks_for_what_the_library_has(name: str) -> None:
    case = run(client(), Spec(PROTOCOL, name))
    calls = list(case.done("mol.call"))
    assert [
        str(done.result) for done in calls if done.result is None or done.result.word == "unsupported"
    ] == []
    assert judge(case) == []


def test_a_workload_asks_for_what_the_library_has() -> None:
    verdict = verdict_on(run_schedule(client(), draw(Setting(PROTOCOL, Realism.LEGAL), "1")))
    assert verdict.word is Word.PASS, verdict
