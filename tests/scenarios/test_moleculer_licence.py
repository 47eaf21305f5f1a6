"""What a node of Moleculer may do, and pass: each of these clients is correct, and unlike the reference."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import pytest

from conformance.clients.adapter.contract import STRICT
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.mutants import matrix
from conformance.clients.mutants.registry import Mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.moleculer.caller import Caller
from conformance.clients.reference.moleculer.events import Events
from conformance.clients.reference.moleculer.post import Post
from conformance.clients.reference.moleculer.serving import Server
from conformance.results import Verdict
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario
from tests.scenarios.proofs import in_memory

Json = dict[str, Any]
PASSES = Verdict.PASS


class NothingIsNull(Caller):
    """Writes null for parameters that were not given, and an empty text for no caller."""

    def request(self, action: str, params: Any, *more: Any) -> Json:
        packet = super().request(action, params, *more)
        return {**packet, "params": params, "caller": packet["caller"] or ""}


class AtTheSameTime(Events):
    """Runs the handlers of events at the same time, so that they overtake each other."""

    def listen(self, pattern: str, group: str, handle: Callable[[Json], Awaitable[None]]) -> None:
        begun: list[asyncio.Task[None]] = []

        async def late(packet: Json, delay_s: float) -> None:
            await asyncio.sleep(delay_s)
            await handle(packet)

        async def begin(packet: Json) -> None:
            begun.append(asyncio.create_task(late(packet, 0.0 if len(begun) % 2 else 0.02)))

        super().listen(pattern, group, begin)


class ByTheTable(Server):
    """Answers a request with an error that lacks what the field table requires."""

    def request(self, packet: Json) -> None:
        if "level" in packet:
            super().request(packet)
        else:
            found = self.find(packet["action"])
            assert found is not None
            self.refuse(packet, self.context(packet, found[0], None), ClientError("invalid", "no level"))


class ReadsNumbers(Post):
    """Takes the number of its version for the text."""

    def speaks(self, ver: Any) -> bool:
        return super().speaks(str(ver) if isinstance(ver, int) else ver)


class Plain(AdapterBase):
    """As the reference."""


class WithoutItself(AdapterBase):
    """Its registry has the other nodes only."""

    async def _perform(self, request: Json) -> Any:
        found = await super()._perform(request)
        if request["op"] == "mol.registry":
            return {"nodes": [node for node in found["nodes"] if node["id"] != "client"]}
        return found


class Shuffling(AdapterBase):
    """May deliver events in another order."""

    contract: ClassVar = {**STRICT, "shuffles": True}


class NeverRaising(AdapterBase):
    """Callbacks may not raise; actions may fail."""

    caps = "auto_reconnect callback_sleep"


def row(scenario_id: str) -> Scenario:
    found = [item for item in all_scenarios() if (item.protocol, item.id) == ("moleculer", scenario_id)]
    return next(item for item in found if in_memory(item) and item.variant in ("", "nats"))


def judged(
    scenario_id: str, monkeypatch: pytest.MonkeyPatch, part: type, adapter: type[AdapterBase]
) -> matrix.Judgement:
    client = Mutant("another", "", "wire", (), "moleculer", part).adapter
    monkeypatch.setattr(matrix, "reference", lambda protocol: type("Another", (adapter, client), {}))
    return matrix.run(row(scenario_id), invariants=True)


@pytest.mark.parametrize(
    ("scenario_id", "part", "adapter", "verdict"),
    [
        ("MOL-3.01", NothingIsNull, Plain, PASSES),
        ("MOL-3.03", NothingIsNull, Plain, PASSES),
        ("MOL-3.07", NothingIsNull, Plain, PASSES),
        ("NET-1.04", AtTheSameTime, Shuffling, PASSES),
        ("NET-1.05", AtTheSameTime, Shuffling, PASSES),
        ("MOL-4.07", AtTheSameTime, Shuffling, PASSES),
        ("MOL-3.12", ByTheTable, Plain, Verdict.NON_STRICT),
        ("MOL-1.10", Caller, WithoutItself, PASSES),
        ("MOL-1.08", ReadsNumbers, Plain, Verdict.NON_STRICT),
        ("MOL-3.04", Caller, NeverRaising, PASSES),
    ],
)
def test_a_correct_node_of_another_kind_passes(
    scenario_id: str,
    part: type,
    adapter: type[AdapterBase],
    verdict: Verdict,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = judged(scenario_id, monkeypatch, part, adapter)
    assert (found.verdict, list(found.broken)) == (verdict, []), found.reason


@pytest.mark.parametrize("scenario_id", ["NET-1.04", "NET-1.05"])
def test_who_promises_the_order_of_events_is_held_to_it(
    scenario_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judged(scenario_id, monkeypatch, AtTheSameTime, Plain)
    assert found.verdict is Verdict.FAIL, found.reason
