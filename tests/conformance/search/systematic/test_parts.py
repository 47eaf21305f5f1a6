"""Messages of several parts with other parts."""

from __future__ import annotations

import pytest

from conformance.clients.mutants.pzq.bare import BareSocket
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.pzq.sockets import Connector, OnMessage, Socket
from conformance.clients.reference.registry import definition, without_sockets
from conformance.rules import judge
from conformance.run.acts import ACTS
from conformance.run.acts.parts import with_parts
from conformance.run.inprocess import run, runner
from conformance.run.specs import Injection, Spec
from conformance.search.systematic.universe import places, singles
from fakebrokers.pzq.memory import SocketType

PARTS = (b"a", b"", b"c")


@pytest.mark.parametrize(
    ("how", "at", "wanted"),
    [
        ("without", 1, (b"a", b"c")),
        ("twice", 0, (b"a", b"a", b"", b"c")),
        ("blank before", 2, (b"a", b"", b"", b"c")),
        ("more before", 1, (b"a", b"more", b"", b"c")),
        ("longer", 2, (b"a", b"", b"c\x00")),
        ("zero", 0, (b"0", b"", b"c")),
        ("empty", 2, (b"a", b"", b"")),
    ],
)
def test_a_change_at_one_part(how: str, at: int, wanted: tuple[bytes, ...]) -> None:
    assert with_parts(PARTS, how, at) == wanted


def test_the_act_has_its_places_where_messages_have_parts() -> None:
    case = runner("pzq")(Spec("pzq", "waited"))
    assert "part" in {item.spec.injections[0].act for item in singles(case)}


class Bytewise(Connector):
    """Gives sockets of a transport of its own, without a defect."""

    def in_memory(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> Socket:
        if kind == "REQ":
            return super().in_memory(endpoint, kind, on_message)
        return BareSocket(endpoint, kind, on_message, in_memory=True)


BYTEWISE = without_sockets(adapter_of(definition("pzq"), (Bytewise,), "Bytewise"))


@pytest.mark.parametrize("base", ["waited", "bodies", "consume", "closing", "turned-away"])
def test_a_correct_transport_stands_whatever_comes_of_its_bytes(base: str) -> None:
    plain = Spec("pzq", base)
    acts = ("torn", "trickle", "glue")
    specs = [item.spec for item in singles(run(BYTEWISE, plain)) if item.spec.injections[0].act in acts]
    assert len(specs) > 12
    for spec in (plain, *specs[:: max(1, len(specs) // 12)]):
        assert judge(run(BYTEWISE, spec)) == [], spec


@pytest.mark.parametrize(
    ("mutant", "base", "injection", "invariant"),
    [
        ("reads-are-whole", "waited", Injection("c1", "out", 1, "trickle", 0.6), "errors-for-a-reason"),
        ("one-message-a-read", "unwaited", Injection("c1", "out", 1, "glue", 2), "written-once"),
        ("half-messages-count", "by-hand", Injection("c2", "out", 1, "torn", [87]), "delivers-what-came"),
        ("half-acks-count", "waited", Injection("c1", "out", 1, "torn", [21]), "ack-needs-confirm"),
    ],
)
def test_a_defect_of_a_transport_shows_there(
    mutant: str, base: str, injection: Injection, invariant: str
) -> None:
    spec = Spec("pzq", base, (injection,))
    assert invariant in {finding.name for finding in judge(runner("pzq", mutant)(spec))}
    assert judge(runner("pzq")(spec)) == []


def test_a_message_is_torn_at_the_borders_of_its_parts_and_behind_them() -> None:
    case = runner("pzq")(Spec("pzq", "waited"))
    place = next(place for place in places(case) if place.direction == "out")
    assert [len(part) for part in place.data] == [16, 1, 0]
    assert [param for _, param in ACTS["torn"].params(place, case.traits)] == [[18], [19], [21], [22]]


@pytest.mark.parametrize(
    "mutant",
    ["colon-and-blank", "values-are-numbers", "last-line-is-empty", "known-keys-only", "lines-all-count"],
)
def test_what_a_client_makes_of_odd_lines(mutant: str) -> None:
    spec = Spec("pzq", "odd-counters")
    assert {finding.name for finding in judge(runner("pzq", mutant)(spec))} & {
        "answer-value",
        "answer-counts",
    }
    assert judge(runner("pzq")(spec)) == []
