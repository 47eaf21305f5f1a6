"""A correct client that says the same in other words, or asks for less, fails nothing for it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from conformance.clients.adapter.kit import AdapterBase, Failure
from conformance.clients.mutants import matrix
from conformance.clients.mutants.matrix import GOOD
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.blazingmq.watchdog import Watchdog
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.handshake import Handshake
from conformance.clients.reference.rabbitmq_stream.locator import Locator
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription
from conformance.clients.reference.registry import reference
from conformance.results import Verdict
from conformance.suite.load import all_scenarios
from fakebrokers.blazingmq.codes import AckStatus


class Numbers(AdapterBase):
    """Reports properties as numbers, and the status of a negative ACK as the number on the wire."""

    def emit(self, event: str, **fields: Any) -> None:
        if properties := (fields.get("meta") or {}).get("properties"):
            shown = {
                name: {**one, "value": int(one["value"])} if one["type"] == "int64" else one
                for name, one in properties.items()
            }
            fields["meta"] = {**fields["meta"], "properties": shown}
        super().emit(event, **fields)

    def _write(self, line: dict[str, Any]) -> None:
        code = (line.get("error") or {}).get("code")
        if code in AckStatus.__members__:
            line = {**line, "error": {**line["error"], "code": int(AckStatus[code])}}
        super()._write(line)


class Names(AdapterBase):
    """Names a queue as the script does, not by its URI."""

    def emit(self, event: str, **fields: Any) -> None:
        if targets := fields.get("targets"):
            fields["targets"] = [one.rpartition("/")[2] for one in targets]
        super().emit(event, **fields)


class Loud(AdapterBase):
    """Tells of a lost connection by an error, too."""

    def emit(self, event: str, **fields: Any) -> None:
        if event == "session" and fields["what"] == "connection_lost":
            error = Failure("connection", "reset by peer", definite=False).report()
            super().emit("error", session=fields["session"], where="read", error=error)
        super().emit(event, **fields)


class Plain(AdapterBase):
    """Like the reference client."""


def judged(
    monkeypatch: pytest.MonkeyPatch, protocol: str, scenario_id: str, manner: type[AdapterBase]
) -> matrix.Judgement:
    client = type(f"{manner.__name__}Reference", (manner, reference(protocol)), {})
    monkeypatch.setattr(matrix, "reference", lambda name: client)
    item = next(one for one in all_scenarios() if (one.protocol, one.id) == (protocol, scenario_id))
    return matrix.run(item, invariants=True)


@pytest.mark.parametrize(
    ("protocol", "scenario_id", "manner"),
    [
        pytest.param("blazingmq", "BMQ-1.14", Numbers, id="a-property-as-a-number"),
        pytest.param("blazingmq", "BMQ-3.09", Numbers, id="a-status-as-a-number"),
        pytest.param("blazingmq", "BMQ-5.14", Names, id="a-queue-by-its-name"),
        pytest.param("rabbitmq-stream", "RMQS-3.10", Loud, id="a-loss-as-an-error"),
    ],
)
def test_other_words_for_the_same(
    monkeypatch: pytest.MonkeyPatch, protocol: str, scenario_id: str, manner: type[AdapterBase]
) -> None:
    found = judged(monkeypatch, protocol, scenario_id, manner)
    assert found.verdict in GOOD, found.reason
    assert not found.broken


def test_who_publishes_without_asking_for_metadata_may(monkeypatch: pytest.MonkeyPatch) -> None:
    async def on_the_control_link(self: Locator, stream: str, deadline: float) -> Any:
        return await self.links.control_link(deadline)

    monkeypatch.setattr(Locator, "leader_link", on_the_control_link)
    found = judged(monkeypatch, "rabbitmq-stream", "NET-4.02", Plain)
    assert found.verdict in GOOD, found.reason


@pytest.mark.parametrize(("answers", "verdict"), [(False, Verdict.INCONCLUSIVE), (True, Verdict.FAIL)])
def test_who_cannot_read_a_heartbeat_says_nothing_of_what_comes_after_it(
    monkeypatch: pytest.MonkeyPatch, answers: bool, verdict: Verdict
) -> None:
    answer = Link.heartbeat

    def heartbeat(self: Link) -> None:
        if answers:
            answer(self)
        monkeypatch.setattr(self, "handle", lambda frame: None)

    monkeypatch.setattr(Link, "heartbeat", heartbeat)
    monkeypatch.setattr(Watchdog, "start", lambda self, interval_s, most: None)
    found = judged(monkeypatch, "blazingmq", "BMQ-5.06", Plain)
    assert found.verdict is verdict, found.reason


def test_who_does_not_use_the_length_of_a_chunk_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    check = Subscription.check
    monkeypatch.setattr(
        Subscription, "check", lambda self, chunk: check(self, replace(chunk, data_length=None))
    )
    found = judged(monkeypatch, "rabbitmq-stream", "RMQS-4.19", Plain)
    assert found.verdict is Verdict.NON_STRICT, found.reason
    assert not found.broken


@pytest.mark.parametrize("kind", ["protocol", "connection"])
@pytest.mark.parametrize("scenario_id", ["RMQS-1.17", "RMQS-1.18"])
def test_who_cannot_read_an_answer_may_say_so(
    monkeypatch: pytest.MonkeyPatch, scenario_id: str, kind: str
) -> None:
    def entered(self: Handshake, answer: Any) -> None:
        self.connection.end(ClientError(kind, "the answer to Open has no such form"))

    monkeypatch.setattr(Handshake, "entered", entered)
    found = judged(monkeypatch, "rabbitmq-stream", scenario_id, Plain)
    assert found.verdict is Verdict.NON_STRICT, found.reason
    assert not found.broken
