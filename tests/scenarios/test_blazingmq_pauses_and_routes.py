"""Clients of BlazingMQ that wait long before they try again, route by subscription, compress by message."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.mutants import matrix
from conformance.clients.mutants.matrix import GOOD
from conformance.clients.reference.blazingmq.client import BlazingClient, Pauses
from conformance.clients.reference.blazingmq.deliveries import Deliveries
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.kit import ClientError, adapter_of
from conformance.clients.reference.registry import definition
from conformance.suite.load import all_scenarios
from fakebrokers.blazingmq.frames import HeartbeatRequest, PushMessage
from fakebrokers.blazingmq.options import read_options
from fakebrokers.core.frames import Frame


class FiveSeconds(Pauses):
    """Always the same pause, a little more than that, and no way to change it."""

    def delay(self) -> float:
        return 5.1


class TriesTheFirstAgain(BlazingClient):
    """The first connect, too, is tried again in five seconds, until its time is over."""

    async def connect(self, timeout: float | None) -> None:
        assert timeout is not None
        clock = self.runtime.clock
        deadline = clock.deadline(timeout)
        while True:
            try:
                return await super().connect(deadline - clock.now())
            except ClientError:
                left = deadline - clock.now()
                await asyncio.sleep(min(5.0, left))
                if left <= 5.0:
                    raise ClientError("timeout", "nobody to talk to") from None


class RoutesBySubscription(Deliveries):
    """Finds the queue of a message by its subscription id alone."""

    def take(self, message: PushMessage) -> None:
        queues = self.client.queues
        known = range(1, queues.last_subscription + 1)
        if any(info.number in known for info in read_options(message.options)):
            [reader] = [queue for queue in queues.by_name.values() if queue.read]
            super().take(replace(message, queue_id=reader.q_id))


class CompressesSingly(AdapterBase):
    """Compression is chosen for each message, and not for a session."""

    lacks = "connect.compression"


@pytest.mark.parametrize(
    ("scenario_id", "parts", "manner"),
    [
        pytest.param("BMQ-1.11", (TriesTheFirstAgain,), None, id="first-connect-again-in-5-s"),
        pytest.param("BMQ-5.16", (FiveSeconds,), None, id="three-failures-take-20-s"),
        pytest.param("NET-2.02", (FiveSeconds,), None, id="no-storm-every-5-s"),
        pytest.param("BMQ-4.06", (RoutesBySubscription,), None, id="by-subscription"),
        pytest.param("BMQ-3.21", (), CompressesSingly, id="each-message"),
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


class DeafBehindHeartbeats(Link):
    """Reads nothing any more behind a heartbeat request."""

    is_deaf = False

    def handle(self, frame: Frame) -> None:
        self.is_deaf = self.is_deaf or isinstance(frame, HeartbeatRequest)
        if not self.is_deaf:
            super().handle(frame)


def test_who_is_deaf_behind_heartbeats_has_no_trouble_with_other_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = adapter_of(definition("blazingmq"), (DeafBehindHeartbeats,))
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    [item] = [one for one in all_scenarios() if (one.protocol, one.id) == ("blazingmq", "NET-3.12")]
    assert "a HEARTBEAT_REQ is answered" in matrix.run(item, invariants=False).reason
