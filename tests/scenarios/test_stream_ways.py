"""Correct clients of RabbitMQ Stream that do the same in another way fail nothing for it."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.mutants import matrix
from conformance.clients.mutants.matrix import GOOD
from conformance.clients.mutants.registry import find_mutant
from conformance.clients.reference.kit import ClientError, adapter_of
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.locator import Locator
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription
from conformance.clients.reference.registry import definition
from conformance.results import Verdict
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario
from fakebrokers.core.frames import Malformed
from tests.scenarios.stream_ways import DeclaresWhenNeeded, LeavesConsumers, Lingering, ProducersOnly


class ByNumber(Connection):
    """Looks at the correlation id of an answer only, and at no top bit."""

    def malformed(self, frame: Malformed) -> None:
        if frame.code == "unknown" and len(frame.data) >= 14:
            answer = self.codec.decode(bytes([frame.data[4] | 0x80]) + frame.data[5:])
            if not isinstance(answer, Malformed):
                self.handle(answer)
                return
        super().malformed(frame)


class Strict(Connection):
    """Ends the connection at a frame that it cannot read."""

    def malformed(self, frame: Malformed) -> None:
        self.end(ClientError("protocol", frame.problem))


class AsksAnew(StreamClient):
    """Repeats on the next connection what the loss of one has left without an answer."""

    async def create(self, stream: str, arguments: Any = None, timeout: float | None = None) -> None:
        try:
            await super().create(stream, arguments, timeout)
        except ClientError as error:
            if error.kind not in ("protocol", "connection", "closed"):
                raise
            await super().create(stream, arguments, timeout)


class AnyNode(Locator):
    """Publishes where it is connected if it cannot find the leader: the nodes pass messages on."""

    async def leader_link(self, stream: str, deadline: float) -> Link:
        where = await self.locate(stream, deadline)
        if where.leader is None:
            return await self.links.control_link(deadline)
        return await self.link_to(where.leader, deadline)


class SubscribesAgain(Consuming):
    """Asks again, after a while, for what was refused, as it takes its number for the cause."""

    async def place(self, subscription: Subscription, deadline: float) -> None:
        try:
            await super().place(subscription, deadline)
        except ClientError as error:
            if error.code != 3:
                raise
            self.runtime.tasks.spawn(self._again(subscription))

    async def _again(self, subscription: Subscription) -> None:
        backoff = self.runtime.backoff(3.0, 3.0)
        await backoff.pause()
        await super().place(subscription, self.runtime.clock.deadline(None))


class QuietAboutPublishers(ProducersOnly):
    """Tells of the ends of subscriptions only."""

    def emit(self, event: str, **fields: Any) -> None:
        if event != "session" or fields["what"] == "target_closed":
            super().emit(event, **fields)


class SubscribesLater(AdapterBase):
    """Tells of a refused subscription behind the op, if at all."""

    caps = f"{definition('rabbitmq-stream').caps} lazy_subscribe"


class WithoutNumbers(AdapterBase):
    """Has one error for all refusals."""

    def _write(self, line: dict[str, Any]) -> None:
        if (line.get("error") or {}).get("kind") == "refused":
            line = {**line, "error": {**line["error"], "code": None}}
        super()._write(line)


def row(scenario_id: str) -> Scenario:
    return next(one for one in all_scenarios() if (one.protocol, one.id) == ("rabbitmq-stream", scenario_id))


def judged(
    scenario_id: str,
    monkeypatch: pytest.MonkeyPatch,
    parts: tuple[type, ...] = (),
    manner: type[AdapterBase] | None = None,
) -> matrix.Judgement:
    client: type[AdapterBase] = adapter_of(definition("rabbitmq-stream"), parts)
    if manner is not None:
        client = type("Client", (manner, client), {})
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    return matrix.run(row(scenario_id), invariants=True)


@pytest.mark.parametrize(
    ("scenario_id", "parts", "manner"),
    [
        pytest.param("RMQS-4.25", (SubscribesAgain,), SubscribesLater, id="subscribes-again-later"),
        pytest.param("RMQS-4.25", (), WithoutNumbers, id="refused-without-the-number"),
        pytest.param("RMQS-5.16", (AnyNode,), None, id="publishes-at-any-node"),
        pytest.param("RMQS-3.09", (Lingering,), None, id="many-messages-in-a-frame"),
        pytest.param("RMQS-5.03", (DeclaresWhenNeeded,), None, id="declares-with-the-next-message"),
        pytest.param("RMQS-5.13", (DeclaresWhenNeeded,), None, id="declares-when-the-stream-is-back"),
        pytest.param("RMQS-5.24", (LeavesConsumers,), QuietAboutPublishers, id="reconnects-producers-only"),
        pytest.param("RMQS-6.01", (AsksAnew, Strict), None, id="creates-again-after-a-loss"),
    ],
)
def test_who_does_it_in_another_way_fails_nothing(
    scenario_id: str,
    parts: tuple[type, ...],
    manner: type[AdapterBase] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = judged(scenario_id, monkeypatch, parts, manner)
    assert found.verdict in GOOD, found.reason
    assert not found.broken


def test_who_misses_a_bit_that_no_server_leaves_out_is_not_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged("RMQS-2.05", monkeypatch, (ByNumber,))
    assert found.verdict is Verdict.NON_STRICT, found.reason
    assert not found.broken


def test_a_frame_that_is_broken_is_the_reason_for_what_comes_of_it() -> None:
    found = matrix.run(row("RMQS-2.13"), find_mutant("rabbitmq-stream", "length-in-characters"))
    assert found.criterion_id == "of-n-bytes-the-frame-decodes-its-length-counts-bytes", found.reason
