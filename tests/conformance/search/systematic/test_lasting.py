"""Faults that stay, and refusals that are odd."""

from __future__ import annotations

import pytest

from conformance.clients.mutants.registry import find_mutant
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.rabbitmq_stream.links import Links
from conformance.clients.reference.registry import definition, without_sockets
from conformance.rules import judge
from conformance.run.acts import ACTS
from conformance.run.inprocess import run, runner
from conformance.run.specs import Injection, Spec
from conformance.search.systematic.universe import places
from fakebrokers.rabbitmq_stream.frames import SubscribeResponse

STREAM = "rabbitmq-stream"


def stays(kind: str, first: int, act: str, direction: str = "out") -> Injection:
    return Injection("c1", direction, 1, "stays", [kind, first, act, None])


def test_it_acts_on_every_connection_until_the_faults_are_cleared() -> None:
    spec = Spec(STREAM, "publish", (stays("SaslHandshakeResponse", 1, "rst-before"),))
    case = runner(STREAM)(spec)
    assert judge(case) == []
    assert len(case.conns) >= 3
    assert case.hits >= 2
    assert not any(conn.ready for conn in list(case.conns.values())[:2])
    assert any(conn.ready for conn in case.conns.values())


def test_it_may_begin_with_a_later_frame() -> None:
    spec = Spec(STREAM, "both", (stays("SaslHandshakeResponse", 2, "fin"),))
    case = runner(STREAM)(spec)
    first, second = list(case.conns.values())[:2]
    assert first.ready is not None
    assert second.ready is None
    assert judge(case) == []


def test_a_client_without_pauses_is_found_by_it() -> None:
    injection = Injection("c2", "in", 1, "stays", ["clientIdentity", 2, "fin", None])
    spec = Spec("blazingmq", "turned-away", (injection,))
    found = {finding.name for finding in judge(runner("blazingmq", "hammers-the-first-connect")(spec))}
    assert "no-storm" in found
    assert judge(runner("blazingmq")(spec)) == []


@pytest.mark.parametrize(("code", "found"), [(None, set()), (6, {"pauses-between-attempts"})])
def test_a_refusal_that_stays_has_every_code_in_turn(code: int | None, found: set[str]) -> None:
    """Some clients ask again for some codes only: here for 6, "stream not available"."""
    injection = Injection(
        "c1", "out", 1, "stays-refused", ["SubscribeResponse", 1, "contradict", ["instead", code]]
    )
    spec = Spec(STREAM, "several", (injection,))
    case = runner(STREAM, "refused-subscribe-repeated-at-once")(spec)
    assert {finding.name for finding in judge(case)} == found
    assert judge(runner(STREAM)(spec)) == []


def test_which_refusals_stay_for_an_answer() -> None:
    case = runner(STREAM)(Spec(STREAM, "several"))
    asked = [place for place in places(case) if isinstance(place.frame, SubscribeResponse)]
    first = [param[3][1] for _, param in ACTS["stays-refused"].params(asked[0], case.traits)]
    assert first == [None, *case.traits.questions.refusals]
    assert [param[3][1] for _, param in ACTS["stays-refused"].params(asked[1], case.traits)] == [None]
    assert list(ACTS["stays-refused"].params(asked[2], case.traits)) == []


def test_a_refusal_with_another_part() -> None:
    injection = Injection("c1", "out", 1, "refusal", ["part", ["foreign", 3]])
    spec = Spec("pzq", "waited", (injection,))
    assert find_mutant("pzq", "reasons-are-utf8")
    assert judge(runner("pzq", "reasons-are-utf8")(spec))
    assert judge(runner("pzq")(spec)) == []
    assert ACTS["refusal"].lies


class NeverTold(Links):
    """Whoever waits for a connection is not told when there is one."""

    def progress(self) -> None:
        if self.control is None:
            super().progress()


def test_an_op_that_waits_is_asked_once_there_is_a_connection() -> None:
    client = without_sockets(adapter_of(definition(STREAM), (NeverTold,), "NeverTold"))
    found = {finding.name for finding in judge(run(client, Spec(STREAM, "both")))}
    assert "asks-once-it-can" in found
