"""A correct client that does something in its own manner fails no row for it, and no rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.mutants import matrix
from conformance.clients.mutants.matrix import GOOD
from conformance.clients.mutants.moleculer.mutants_joining import IgnoresNamespace
from conformance.clients.mutants.narconi.mutants_http import NamesUnescaped
from conformance.clients.reference.kit import ClientError, adapter_of
from conformance.clients.reference.moleculer.pings import Pings
from conformance.clients.reference.narconi.consumer import Consumer
from conformance.clients.reference.registry import definition
from conformance.results import Verdict
from conformance.suite.load import all_scenarios
from tests.scenarios import blazingmq_ways, moleculer_ways, narconi_ways, nats_ways, pzq_ways

Ways = Mapping[str, tuple[tuple[type, ...], type[AdapterBase] | None]]
WAYS: Mapping[str, Ways] = {
    "blazingmq": blazingmq_ways.WAYS,
    "moleculer": moleculer_ways.WAYS,
    "narconi": narconi_ways.WAYS,
    "nats": nats_ways.WAYS,
    "pzq": pzq_ways.WAYS,
}


@pytest.mark.parametrize(
    ("protocol", "row", "way"),
    [
        ("blazingmq", "BMQ-1.14", "closes-directly"),
        ("moleculer", "MOL-1.05", "nameless"),
        ("moleculer", "MOL-1.11", "says-null"),
        ("moleculer", "MOL-2.03", "says-null"),
        ("moleculer", "MOL-3.01 nats", "says-null"),
        ("moleculer", "MOL-3.01 nats", "lacks-arguments"),
        ("moleculer", "MOL-3.02 nats", "says-null"),
        ("moleculer", "MOL-3.03", "says-null"),
        ("moleculer", "MOL-3.24", "cannot-read-error"),
        ("moleculer", "MOL-3.24", "guesses-success"),
        ("moleculer", "MOL-3.23 nats", "wants-all"),
        ("moleculer", "MOL-4.01", "says-null"),
        ("moleculer", "NET-1.05 nats", "wants-all"),
        ("moleculer", "MOL-4.03 redis", "lacks-arguments"),
        ("moleculer", "NET-1.01 nats", "shows-no-registry"),
        ("moleculer", "NET-1.05 nats", "shows-no-registry"),
        ("moleculer", "NET-1.13 nats", "starts-behind"),
        ("moleculer", "NET-2.06 nats", "starts-behind"),
        ("moleculer", "NET-2.02 redis", "shows-no-registry"),
        ("moleculer", "NET-2.07 mqtt", "shows-no-registry"),
        ("narconi", "NARC-1.19", "subscribes-later"),
        ("narconi", "NARC-3.25", "subscribes-later"),
        ("narconi", "NET-1.07", "subscribes-later"),
        ("narconi", "NET-1.09", "refuses-meanwhile"),
        ("narconi", "NET-1.09", "says-how-long-at-most"),
        ("narconi", "NET-1.09", "keeps-what-is-overdue"),
        ("narconi", "NET-3.03", "subscribes-later"),
        ("narconi", "NET-3.01", "one-request-each"),
        ("narconi", "NET-3.02", "one-request-each"),
        ("narconi", "NET-3.02", "wakes-in-any-order"),
        ("narconi", "NET-3.03", "one-request-each"),
        ("narconi", "NET-3.03", "says-it-was-closed"),
        ("narconi", "NARC-1.14", "times-silence"),
        ("narconi", "NARC-1.17", "repeats-with-get"),
        ("narconi", "NARC-2.02", "no-sub-protocol"),
        ("narconi", "NARC-2.14", "one-at-a-time"),
        ("narconi", "NARC-2.14", "refuses-meanwhile"),
        ("narconi", "NARC-2.21", "only-text"),
        ("narconi", "NARC-2.24", "says-how-long-at-most"),
        ("narconi", "NARC-2.26", "names-as-given"),
        ("narconi", "NARC-2.27", "refuses-meanwhile"),
        ("narconi", "NARC-3.02 seed", "bodies-are-binary"),
        ("narconi", "NARC-3.14 real", "errors-are-reasons"),
        ("narconi", "NARC-2.21", "metadata-is-text"),
        ("narconi", "NARC-3.16", "metadata-is-text"),
        ("narconi", "NARC-3.16", "leaves-out-no-text"),
        ("narconi", "NARC-3.18", "called-on-the-reader"),
        ("narconi", "NET-2.11", "own-close-code"),
        ("nats", "NATS-1.03", "names-its-errors"),
        ("nats", "NATS-1.04", "names-its-errors"),
        ("nats", "NET-1.02", "acts-on-the-size"),
        ("nats", "NET-2.06", "connect-makes-it"),
        ("pzq", "NET-2.02", "sends-whatever-it-takes"),
        ("pzq", "NET-2.07", "sends-whatever-it-takes"),
        ("pzq", "PZQ-1.08", "status-is-enough"),
        ("pzq", "PZQ-1.11", "odd-answers-are-errors"),
        ("pzq", "PZQ-2.14", "body-may-be-missing"),
        ("pzq", "PZQ-2.28", "looks-less-often-when-idle"),
        ("pzq", "PZQ-3.03", "by-the-letter"),
        ("pzq", "PZQ-3.08", "by-the-letter"),
        ("pzq", "NET-3.07", "values-are-digits"),
        ("pzq", "NET-4.04", "no-list-of-one"),
    ],
)
def test_who_does_it_in_another_manner_passes(
    protocol: str, row: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, manner = WAYS[protocol][way]
    client = adapter_of(definition(protocol), parts)
    if manner is not None:
        client = type("Alternative", (manner, client), {})
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    scenario_id, _, variant = row.partition(" ")
    [item] = [one for one in all_scenarios() if one.key == (scenario_id, protocol, variant)]
    found = matrix.run(item, invariants=True)
    assert found.verdict in GOOD, found.reason
    assert not [broken for broken in found.broken if broken.level == "MUST"]


#: A message without a position is named by the first of what was handed over.
CHANGED = 'message "AAECAwQFBgcICQoLDA0ODxA...'


class NeverDecodes(Consumer):
    """Hands over the text that stands for the bytes of a body."""

    def decode(self, text: Any) -> bytes:
        return str(text).encode()


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


def test_a_changed_body_is_not_called_a_matter_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    client = adapter_of(definition("narconi"), [NeverDecodes])
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    [item] = [one for one in all_scenarios() if one.id == "NARC-3.03"]
    found = matrix.run(item, invariants=True)
    assert [(one.name, one.detail) for one in found.broken] == [
        ("delivers-what-came", f"{CHANGED} was delivered with a body that did not come")
    ]


def test_an_answer_from_an_address_where_nothing_is_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    client = adapter_of(definition("narconi"), [NamesUnescaped])
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    [item] = [one for one in all_scenarios() if one.id == "NARC-1.16"]
    found = matrix.run(item, invariants=True)
    assert found.criterion_id == "project-gold-queue-a-b-one-segment-of-the-path"
    assert found.broken == []


def test_what_came_damaged_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    client = adapter_of(definition("pzq"), [pzq_ways.BodyMayBeMissing])
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    [item] = [one for one in all_scenarios() if one.id == "PZQ-2.14"]
    found = matrix.run(item, invariants=True)
    assert [one.detail for one in found.broken if one.name == "delivers-what-came"] == [
        'message "k4" was delivered, and what came of it has no times, or no body'
    ]


@pytest.mark.parametrize("scenario_id", ["NET-1.07", "NET-1.16"])
def test_what_asks_for_the_registry_needs_it(scenario_id: str) -> None:
    rows = [one for one in all_scenarios() if (one.id, one.protocol) == (scenario_id, "moleculer")]
    assert [row.ops for row in rows] == [("mol.call", "mol.registry")]


class Deaf(AdapterBase):
    """Its application gets nothing of what comes."""

    def emit(self, event: str, **fields: Any) -> None:
        if event != "message":
            super().emit(event, **fields)


@pytest.mark.parametrize(
    ("protocol", "row", "criterion"),
    [
        ("moleculer", "MOL-3.23 redis", "handled-before"),
        ("moleculer", "NET-1.11 nats", "a-message-is-surfaced"),
        ("moleculer", "NET-3.07 nats", "a-message-is-surfaced"),
        ("narconi", "NET-2.10", "a-message-is-surfaced"),
        ("rabbitmq-stream", "NET-3.07", "a-message-is-surfaced"),
    ],
)
def test_who_never_delivers_does_not_fail_for_what_comes_later(
    protocol: str, row: str, criterion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = type("Silent", (Deaf, adapter_of(definition(protocol), ())), {})
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    scenario_id, _, variant = row.partition(" ")
    [item] = [one for one in all_scenarios() if one.key == (scenario_id, protocol, variant)]
    found = matrix.run(item)
    assert (found.verdict, found.criterion_id) == (Verdict.FAIL, criterion), found.reason


def test_what_was_read_from_odd_frames_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    client = adapter_of(definition("narconi"), [narconi_ways.TakesMasked])
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    [item] = [one for one in all_scenarios() if one.id == "NARC-3.19"]
    found = matrix.run(item, invariants=True)
    assert found.criterion_id == "masked-the-client-ends-the-connection"
    assert [one.detail for one in found.broken if one.name == "delivers-what-came"] == [
        'message "hello" was delivered unasked, read from frames that are not as the protocol has them'
    ]
