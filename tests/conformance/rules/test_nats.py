"""What the rules make of NATS where a frame is not whole, an answer is missing or a number is used again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.clients.adapter.kit import report_body
from conformance.clients.adapter.messages import Event
from conformance.clients.adapter.result import Result
from conformance.rules.queues import delivers_what_came
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.material import material_of
from conformance.run.reported import ReportedEvent
from conformance.run.specs import Spec
from conformance.run.trace import Position, TraceRow

ROWS = (
    TraceRow(0, "accept", "c1", ""),
    TraceRow(1, "out", "c1", b"INFO {}\r\nPONG\r\n"),
    TraceRow(2, "in", "c1", b"CONNECT {}\r\nPING\r\nSUB orders 1\r\n"),
)
DEADLINE_S = 9.0
EVENT = object()  #: in `came`: the application gets the message


def done(id: int, name: str, result: Result, **args: Any) -> RunOp:
    one = RunOp(id, name, args, given_ms=None, timeout_s=DEADLINE_S, begun=Position(0, 0, 0), phase="")
    one.ended, one.result = Position(2, 0, 2), result
    return one


def subscribe() -> RunOp:
    return done(1, "subscribe", Result(1, "subscribe", True, 0, 0, value={}), sub="s", target="orders")


def case_of(rows: list[TraceRow], ops: list[RunOp], events: list[ReportedEvent]) -> Case:
    case = Case(Spec("nats", "consume"), material_of("nats"), rows, ops, events)
    case.ended_s = 99.0
    case.contract = SimpleNamespace(allows=lambda word: False, hello=None)  # type: ignore[assignment]
    return case


@pytest.mark.parametrize(("came", "body", "found"), [
    ([b"MSG orders 1 3\r\ntea\r\n", EVENT], b"tea", []),
    ([b"MSG orders 1 3\r\ntea", EVENT, b"\r\n"], b"tea", []),
    ([b"MSG orders 1 3\r\ntea", EVENT], b"tea", []),
    ([b"MSG orders 1 3\r\ntea\r", EVENT], b"tea", []),
    ([b"MSG orders 1 3\r\ntea"], b"", []),
    ([EVENT, b"MSG orders 1 3\r\ntea"], b"tea", ["was delivered unasked"]),
    ([b"MSG orders 1 3\r\nte", EVENT], b"te", ["was delivered unasked"]),
    ([b"MSG orders 1 3\r\ntea", EVENT], b"sea", ["with a body that did not come"]),
    ([b"MSG orders 1 3\r\ntea\r\n"], b"", ["came, and was not delivered"]),
])  # fmt: skip
def test_what_a_payload_alone_allows(came: list[object], body: bytes, found: list[str]) -> None:
    rows, events = [*ROWS], []
    for row, what in enumerate(came, 3):
        if what is EVENT:
            fields = {"sub": "s", "target": "orders", "body": report_body(body), "position": None}
            heard = ReportedEvent(Event(row, row, "message", fields))
            heard.at = Position(row, 0, row)
            events.append(heard)
            rows.append(TraceRow(row, "event", "", 1))
        else:
            rows.append(TraceRow(row, "out", "c1", what))
    rows.append(TraceRow(90, "end", "c1", ("client", "fin")))
    case = case_of(rows, [subscribe()], events)
    said = [str(violation[0]) for violation in delivers_what_came(case)]
    assert [words in text for text, words in zip(said, found, strict=True)] == [True] * len(found)


@pytest.mark.parametrize(("subject", "count"), [("orders", 1), ("stock", 2)])
def test_a_subscription_that_the_server_has_already_is_one(subject: str, count: int) -> None:
    again = TraceRow(3, "in", "c1", b"SUB %s 1\r\n" % subject.encode())
    assert len(case_of([*ROWS, again], [subscribe()], []).facts.windows) == count


@pytest.mark.parametrize(("answers", "owes"), [(1, False), (0, True)])
def test_a_ping_without_an_answer_leaves_none_that_fits(answers: int, owes: bool) -> None:
    """The server answers PINGs in their order, so a client cannot know which PONG was lost."""
    rows = [*ROWS, TraceRow(3, "out", "c1", b"PONG\r\n"), TraceRow(4, "in", "c1", b"PING\r\n")]
    rows += [TraceRow(5, "out", "c1", b"PONG\r\n")] * answers
    assert case_of(rows, [], []).conns["c1"].owes is owes
