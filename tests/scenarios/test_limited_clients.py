"""A correct client that takes no short heartbeats, and lacks what others have, fails nothing for it."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from conformance.clients.adapter.kit import AdapterBase, Failure
from conformance.clients.mutants import matrix
from conformance.clients.reference.registry import reference, without_sockets
from conformance.results import Verdict
from conformance.rules.registry import judge
from conformance.run.inprocess import run
from conformance.run.specs import Spec
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario
from tests.conformance.clients.adapter.early import BeforeItStarts
from tests.scenarios.proofs import in_memory

LEAST_S = 5.0
GOOD = {Verdict.PASS, Verdict.NON_STRICT}
UNSUPPORTED = {Verdict.UNSUPPORTED}
#: They ask for short heartbeats, and wait as long as the client's take.
PATIENT = [
    *("MOL-1.08", "MOL-1.09", "MOL-1.12", "MOL-1.13", "MOL-2.01", "MOL-2.03", "MOL-2.04", "MOL-2.05"),
    *("MOL-2.12", "MOL-3.21"),
]
#: They call one node of several, or emit to some groups.
NEED_MORE = ["MOL-1.07", "MOL-4.01"]


class Lacking(AdapterBase):
    """Refuses arguments that it does not have."""

    lacks = "mol.call.node mol.emit.groups"

    async def _perform(self, request: dict[str, Any]) -> Any:
        args = request.get("args") or {}
        if any(
            f"{request['op']}.{name}" in self.lacks.split() for name in {**args, **args.get("options", {})}
        ):
            raise Failure("unsupported", "there is no such argument")
        return await super()._perform(request)


class Limited(Lacking):
    """Refuses shorter heartbeats, as it says."""

    limits: ClassVar = {"heartbeat_min_s": LEAST_S}

    async def _perform(self, request: dict[str, Any]) -> Any:
        args = request.get("args") or {}
        if (args.get("options") or {}).get("heartbeat_s", LEAST_S) < LEAST_S:
            raise Failure("invalid", "heartbeats of 5 s or more")
        return await super()._perform(request)


class OfOneTimeout(Lacking):
    """Has one time-out for all calls of a node, and always reconnects."""

    lacks = "mol.call.timeout_ms connect.auto_reconnect"


class LooksNowAndThen(AdapterBase):
    """Has a time-out of its own, whatever it is given, and is late with it by half at most, as it says."""

    own_ms = 2000
    limits: ClassVar = {"publish_timeout_ms": 2 * own_ms, "request_timeout_ms": 2 * own_ms}

    async def _perform(self, request: dict[str, Any]) -> Any:
        return await super()._perform({**request, "timeout_ms": self.own_ms})


class Ticking(AdapterBase):
    """Has time-outs of its own, looks every 2 s for what is overdue, and says how long that takes at most."""

    limits: ClassVar = {"publish_timeout_ms": 4000, "request_timeout_ms": 6000}

    async def _perform(self, request: dict[str, Any]) -> Any:
        if request["op"] == "publish":
            request = {**request, "timeout_ms": self.limits["publish_timeout_ms"] / 2}
        if request["op"] == "settle":
            await asyncio.sleep(5.0)
        return await super()._perform(request)


class GivesUp(AdapterBase):
    """Its connect takes 7 s at most, whatever it is given."""

    limits: ClassVar = {"connect_timeout_ms": 7000}

    async def _perform(self, request: dict[str, Any]) -> Any:
        if request["op"] == "connect":
            request = {**request, "timeout_ms": self.limits["connect_timeout_ms"]}
        return await super()._perform(request)


def judged(
    item: Scenario, monkeypatch: pytest.MonkeyPatch, limited: type[AdapterBase] = Limited
) -> matrix.Judgement:
    client = type("LimitedReference", (limited, reference(item.protocol)), {})
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    return matrix.run(item)


def rows(*ids: str) -> list[Scenario]:
    found = [item for item in all_scenarios() if item.id in ids and item.variant in ("", "nats")]
    assert {item.id for item in found} == set(ids)
    return [item for item in found if in_memory(item)]


@pytest.mark.parametrize("item", rows(*PATIENT), ids=lambda item: item.id)
def test_no_row_demands_a_shorter_heartbeat(item: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged(item, monkeypatch)
    assert found.verdict in GOOD, found.reason


@pytest.mark.parametrize("item", rows(*NEED_MORE), ids=lambda item: item.id)
def test_what_needs_an_argument_that_is_not_there_is_skipped(
    item: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judged(item, monkeypatch)
    assert found.verdict is Verdict.UNSUPPORTED, found.reason
    assert "the library has no " in found.reason


def offering_rows() -> list[Scenario]:
    """Where the client serves or listens, over NATS."""
    found = [
        item for item in all_scenarios() if item.protocol == "moleculer" and item.variant in ("", "nats")
    ]
    return [item for item in found if {"service", "listener"} & set(item.roles) and in_memory(item)]


#: They add a service to a node that runs.
LATE = {"MOL-1.05", "MOL-1.06", "MOL-1.15", "MOL-3.17", "MOL-3.27", "MOL-4.17"}


@pytest.mark.parametrize("item", offering_rows(), ids=lambda item: item.label)
def test_a_node_may_take_services_before_it_starts_only(
    item: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judged(item, monkeypatch, BeforeItStarts)
    if item.id in LATE:
        assert "after its connect (late_services: false)" in found.reason
    if item.id.startswith("NET-"):  # what they share with other protocols subscribes when it is connected
        assert found.verdict in {*GOOD, Verdict.UNSUPPORTED}, found.reason
    else:
        assert found.verdict in (UNSUPPORTED if item.id in LATE else GOOD), found.reason


@pytest.mark.parametrize("name", ["serve", "events", "joining"])
def test_the_sweep_does_not_blame_it(name: str) -> None:
    client = type("Early", (BeforeItStarts, reference("moleculer")), {})
    assert judge(run(without_sockets(client), Spec("moleculer", name))) == []


def calling_rows() -> list[Scenario]:
    """What calls another node, over NATS."""
    found = [
        item for item in all_scenarios() if item.protocol == "moleculer" and item.variant in ("", "nats")
    ]
    return [item for item in found if "caller" in item.roles and in_memory(item) and not item.soak]


@pytest.mark.parametrize("item", calling_rows(), ids=lambda item: item.id)
def test_a_node_may_have_one_timeout_for_all_of_its_calls(
    item: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judged(item, monkeypatch, OfOneTimeout)
    assert found.verdict in GOOD, found.reason


def timed_rows() -> list[Scenario]:
    return [item for item in rows("NET-3.03", "NET-3.10") if item.protocol != "pzq"]


@pytest.mark.parametrize("item", timed_rows(), ids=lambda item: item.label)
def test_an_op_may_end_before_the_most_that_is_declared(
    item: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judged(item, monkeypatch, LooksNowAndThen)
    assert found.verdict in GOOD, found.reason


@pytest.mark.parametrize("item", rows("PZQ-1.09", "PZQ-2.15"), ids=lambda item: item.id)
def test_a_time_out_of_its_own_is_how_long_it_takes_at_most(
    item: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judged(item, monkeypatch, Ticking)
    assert found.verdict in GOOD, found.reason


@pytest.mark.parametrize("item", rows("MOL-4.17"), ids=lambda item: item.label)
def test_a_connect_may_end_while_there_is_no_server(item: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged(item, monkeypatch, GivesUp)
    assert found.verdict is Verdict.NON_STRICT, found.reason
