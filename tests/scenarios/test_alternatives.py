"""A correct client that is slower, more careful or more talkative than the reference client fails nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from conformance.clients.adapter.kit import AdapterBase, Failure
from conformance.clients.mutants import matrix
from conformance.clients.mutants.matrix import GOOD
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.kit.backoff import Backoff
from conformance.clients.reference.kit.network import Memory, Wire
from conformance.clients.reference.registry import definition, protocols
from conformance.results import Verdict
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario
from tests.scenarios import blazingmq_ways, moleculer_ways, narconi_ways, pzq_ways, stream_ways
from tests.scenarios.proofs import in_memory


class Pieces:
    """Writes what it is given in small pieces."""

    def __init__(self, wire: Wire) -> None:
        self.close, self.abort, self._write = wire.close, wire.abort, wire.write

    def write(self, data: bytes) -> None:
        size = max(7, len(data) // 50)
        for at in range(0, len(data), size):
            self._write(data[at : at + size])


class InPieces(Memory):
    """Its bytes leave in other segments."""

    async def dial(self, endpoint: str, make: Callable[[], asyncio.Protocol]) -> Wire:
        return Pieces(await super().dial(endpoint, make))


class SlowToConnect(Memory):
    """A name server takes its time."""

    async def dial(self, endpoint: str, make: Callable[[], asyncio.Protocol]) -> Wire:
        await asyncio.sleep(0.3)
        return await super().dial(endpoint, make)


class Patient(Backoff):
    """It comes back later than others."""

    def delay(self) -> float:
        return 1.5 + 2 * super().delay()


class Undeclared(AdapterBase):
    """Says nothing of what it may do besides: its author has not read of that."""

    contract: Mapping[str, bool] = {}


class Talkative(AdapterBase):
    """Reports a lost connection as an error, too."""

    def emit(self, event: str, **fields: Any) -> None:
        if event == "session" and fields["what"] == "connection_lost":
            error = Failure("connection", "reset by peer", definite=False).report()
            super().emit("error", session=fields["session"], where="read", error=error)
        super().emit(event, **fields)


class Alternative(NamedTuple):
    """A correct client, with what it does in its own way: parts of the client, and of its adapter."""

    protocol: str
    parts: tuple[type, ...] = ()
    manner: type[AdapterBase] | None = None

    def adapter(self, _: str) -> type[AdapterBase]:
        adapter = adapter_of(definition(self.protocol), self.parts)
        return adapter if self.manner is None else type("Alternative", (self.manner, adapter), {})


WAYS: Mapping[str, tuple[tuple[type, ...], type[AdapterBase] | None]] = {
    "in-pieces": ((InPieces,), None),
    "slow-to-connect": ((SlowToConnect,), None),
    "patient": ((Patient,), None),
    "undeclared": ((), Undeclared),
    "talkative": ((), Talkative),
}
#: What is particular to a protocol.
WAYS_OF: Mapping[str, Mapping[str, tuple[tuple[type, ...], type[AdapterBase] | None]]] = {
    "blazingmq": blazingmq_ways.WAYS,
    "moleculer": moleculer_ways.WAYS,
    "narconi": narconi_ways.WAYS,
    "pzq": pzq_ways.WAYS,
    "rabbitmq-stream": stream_ways.WAYS,
}
#: Rows that one of them fails rightly: what is sent again behind the broker's memory may be stored twice;
#: what is asked for as it comes piles up.
RIGHTLY = {"sends-again": {"BMQ-3.26"}, "credit-at-once": {"RMQS-4.04"}}
#: Rows that show nothing of it: they need two users of one connection, or a counter that can be set.
NOT_SHOWN = {"one-for-each": {"RMQS-3.21", "RMQS-4.24"}, "counts-for-all": {"RMQS-2.09"}}
#: These servers want each frame of the handshake in one segment (docs/protocols/rabbitmq-stream.md, 12).
WHOLE_FRAMES = {"RMQS-1.20", "RMQS-7.14", "RMQS-8.06"}


def problem(item: Scenario) -> str | None:
    """What is said against the client."""
    found = matrix.run(item, invariants=True)
    broken = [each.detail for each in found.broken if each.level == "MUST"]
    if found.verdict in (*GOOD, Verdict.UNSUPPORTED, Verdict.PROFILE) and not broken:
        return None
    return f"{item.label} {found.verdict}: {found.reason} {broken}"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("protocol", "way"), [(one, way) for one in protocols() for way in (*WAYS, *WAYS_OF.get(one, ()))]
)
def test_no_row_fails_a_correct_client(protocol: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [item for item in all_scenarios() if item.protocol == protocol and in_memory(item)]
    items = [item for item in items if way != "in-pieces" or item.id not in WHOLE_FRAMES]
    left_out = {*RIGHTLY.get(way, ()), *NOT_SHOWN.get(way, ())}
    items = [item for item in items if item.id not in left_out]
    plain = {item.key for item in items if problem(item)}  # they pass over sockets
    assert len(plain) <= len(items) // 10, plain
    how = {**WAYS, **WAYS_OF.get(protocol, {})}[way]
    monkeypatch.setattr(matrix, "reference", Alternative(protocol, *how).adapter)
    assert [found for item in items if item.key not in plain and (found := problem(item))] == []


@pytest.mark.parametrize(
    ("scenario_id", "way"),
    [("MOL-2.03", "slow-to-connect"), ("MOL-3.11", "slow-to-connect"), ("RMQS-1.20", "in-pieces")],
)
def test_rows_that_a_correct_client_did_not_pass_or_cannot(
    scenario_id: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = next(item for item in all_scenarios() if item.id == scenario_id)
    monkeypatch.setattr(matrix, "reference", Alternative(item.protocol, *WAYS[way]).adapter)
    found = matrix.run(item, invariants=True)
    assert (found.verdict is Verdict.FAIL) == (scenario_id in WHOLE_FRAMES), found.reason
    assert not found.broken
