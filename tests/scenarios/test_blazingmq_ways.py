"""Correct clients of BlazingMQ that do the same in another way fail nothing for it."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, ClassVar

import pytest

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.mutants import matrix
from conformance.clients.mutants.matrix import GOOD
from conformance.clients.reference.blazingmq.client import BlazingClient, Pauses
from conformance.clients.reference.blazingmq.deliveries import Deliveries
from conformance.clients.reference.blazingmq.posts import Posts
from conformance.clients.reference.kit import ClientError, adapter_of
from conformance.clients.reference.registry import definition
from conformance.suite.load import all_scenarios
from fakebrokers.blazingmq.frames import AckMessage, PushMessage
from tests.scenarios.blazingmq_ways import CAPS, ConfirmsFirst, ConfirmsTogether, Once, Says, allows


class TellsTheEnd(AdapterBase):
    """Has no word for a loss but that of the end, as it does not come back."""

    caps = " ".join(word for word in CAPS.split() if word != "auto_reconnect")

    def emit(self, event: str, **fields: Any) -> None:
        if event == "session" and fields["what"] == "connection_lost":
            fields["what"] = "disconnected"
        super().emit(event, **fields)


class OwnTimeouts(AdapterBase):
    """Each kind of op has one time-out, which no user can change."""

    limits: ClassVar = {"request_timeout_ms": 3000, "publish_timeout_ms": 3000, "close_timeout_ms": 6000}

    async def _perform(self, request: dict[str, Any]) -> Any:
        kind = {"publish": "publish", "bmq.open_queue": "request", "close": "close"}.get(request["op"])
        if kind is not None:
            request = {**request, "timeout_ms": self.limits[f"{kind}_timeout_ms"]}
        return await super()._perform(request)


class SmallLetters(AdapterBase):
    """Writes a GUID in small letters."""

    def emit(self, event: str, **fields: Any) -> None:
        if event == "message":
            fields["position"] = fields["position"].lower()
        super().emit(event, **fields)

    def _write(self, line: dict[str, Any]) -> None:
        result = line.get("result")
        if isinstance(result, dict) and "guid" in (meta := result.get("meta") or {}):
            line = {**line, "result": {**result, "meta": {**meta, "guid": meta["guid"].lower()}}}
        super()._write(line)


class Chance(Pauses):
    """Each pause is drawn from half to one and a half times what is due."""

    def __init__(self, random: Random, first_s: float, longest_s: float) -> None:
        super().__init__(Random(1), 1.0, 2.0)

    def delay(self) -> float:
        return self.grown_s * (1.5 if self.failures % 2 else 0.6)


class LeavesAtStrangers(Posts):
    """An ACK for nobody ends the connection, which is made again."""

    def unexpected(self, message: AckMessage) -> None:
        assert self.client.link is not None
        self.client.link.end(ClientError("protocol", "an ACK for nobody"))


class ThreadForEach(Posts):
    """Outcomes are told by threads of their own, one now and then before another."""

    async def acked(self, number: int, answer: Any, timeout: float) -> Any:
        found = await super().acked(number, answer, timeout)
        await asyncio.sleep(0.003 * (number % 3))
        return found


class Late(ConfirmsTogether):
    """Confirms wait for a second."""

    AFTER_S = 1.0


class Drops(Deliveries):
    """What comes a second time is dropped."""

    def __init__(self, client: BlazingClient) -> None:
        super().__init__(client)
        self.seen: set[bytes] = set()

    def take(self, message: PushMessage) -> None:
        if message.guid not in self.seen:
            self.seen.add(message.guid)
            super().take(message)


@pytest.mark.parametrize(
    ("scenario_id", "parts", "manner"),
    [
        *[
            pytest.param(row, (Once,), TellsTheEnd, id=f"{row}-disconnected-for-ever")
            for row in ("BMQ-5.04", "BMQ-5.05", "BMQ-5.10")
        ],
        *[
            pytest.param(row, (), OwnTimeouts, id=f"{row}-own-time-outs")
            for row in ("BMQ-2.05", "BMQ-2.06", "BMQ-3.03", "BMQ-3.04", "BMQ-6.03")
        ],
        pytest.param("BMQ-3.06", (), SmallLetters, id="a-guid-in-small-letters"),
        pytest.param("BMQ-4.01", (), SmallLetters, id="positions-in-small-letters"),
        pytest.param("BMQ-3.06", (ThreadForEach,), None, id="outcomes-in-another-order"),
        pytest.param("BMQ-3.25", (LeavesAtStrangers,), None, id="leaves-at-an-ack-for-nobody"),
        pytest.param("BMQ-4.05", (Drops,), None, id="drops-what-comes-twice"),
        pytest.param("BMQ-4.14", (Late, ConfirmsFirst), None, id="confirms-late"),
        pytest.param("BMQ-7.06", (Says,), allows(reads_odd=True), id="reads-json-only"),
        pytest.param("BMQ-5.15", (Chance,), None, id="pauses-by-chance"),
    ],
)
def test_who_does_it_in_another_way_fails_nothing(
    scenario_id: str,
    parts: tuple[type, ...],
    manner: type[AdapterBase] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client: type[AdapterBase] = adapter_of(definition("blazingmq"), parts)
    if manner is not None:
        client = type("Client", (manner, client), {})
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    [item] = [one for one in all_scenarios() if (one.protocol, one.id) == ("blazingmq", scenario_id)]
    found = matrix.run(item, invariants=True)
    assert found.verdict in GOOD, found.reason
    assert not found.broken
