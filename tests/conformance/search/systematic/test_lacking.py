"""A library is asked for no argument that it does not have: with one time-out for all calls, say."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.adapter.kit import AdapterBase, Failure
from conformance.clients.adapter.messages import Hello
from conformance.clients.mutants.registry import find_mutant
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.registry import definition, reference, without_sockets
from conformance.rules import judge
from conformance.run.inprocess import run
from conformance.run.material import material_of
from conformance.run.specs import Spec
from conformance.search.random.draw import Setting, draw
from conformance.search.random.run import run as run_schedule
from conformance.search.random.verdict import Word, verdict_on
from conformance.search.systematic.children import suits
from fakebrokers.faults import Realism
from tests.conformance.clients.adapter.early import BeforeItStarts

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


@pytest.mark.parametrize("name", ["serve", "events", "thrown", "rounds"])
def test_services_come_before_the_node_starts_where_none_can_come_later(name: str) -> None:
    early = type("Early", (BeforeItStarts, without_sockets(reference(PROTOCOL))), {})
    case = run(early, Spec(PROTOCOL, name))
    offers = list(case.done("mol.serve", "mol.listen"))
    assert offers
    assert all(done.result is not None and done.result.ok for done in offers)
    assert judge(case) == []


def test_a_service_that_came_before_is_judged() -> None:
    parts = [find_mutant(PROTOCOL, "answers-without-data").part]
    early = type("Early", (BeforeItStarts, without_sockets(adapter_of(definition(PROTOCOL), parts))), {})
    found = judge(run(early, Spec(PROTOCOL, "serve")))
    assert "answers-what-was-asked" in {finding.name for finding in found}


def test_a_capability_that_is_denied_is_none() -> None:
    base = next(one for one in material_of(PROTOCOL).bases.values() if one.needs == ("streams",))
    for said, can in (({}, False), ({"streams": False}, False), ({"streams": True}, True)):
        hello = Hello("mine", "mylib", "1", "rust", [PROTOCOL], [base.role], ops=[], caps=dict(said))
        assert suits(base, hello) is can
