"""What rules do not hold against a client that met something odd: as wide as it is meant, and no wider."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.clients.adapter.messages import Event
from conformance.rules.closing import close_ends
from conformance.rules.connections import one_loss_event
from conformance.rules.giving_up import gives_up_for_a_reason, protocol_errors_for_a_reason
from conformance.rules.life import complaints_are_told
from conformance.rules.outcomes import failed_yet_stored, nack_needs_error
from conformance.rules.requests import refused_needs_answer, request_answer_counts
from conformance.run.case import Case
from conformance.run.facts import Complaint, Facts, Question, Written
from conformance.run.material import material_of
from conformance.run.reported import ReportedEvent, ReportedOutcome
from conformance.run.specs import Spec
from conformance.run.trace import Position
from conformance.run.traits import Asks
from conformance.run.view import Conn, SeenFrame
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.pzq.frames import MonitorReply, MonitorRequest

PROTOCOL = "rabbitmq-stream"


def case_of(*conns: Conn, slack_s: float = 0.0) -> Case:
    case = Case(Spec(PROTOCOL, "publish"), material_of(PROTOCOL), [], [], [])
    case.slack_s = slack_s
    case.__dict__["_read"] = ({conn.name: conn for conn in conns}, Facts())
    return case


@pytest.mark.parametrize(
    ("row", "at_s", "slack_s", "unread"),
    [(3, 3.0, 0.0, True), (9, 6.1, 0.25, True), (9, 6.1, 0.0, False), (9, 7.0, 0.25, False)],
)
def test_what_an_op_may_have_come_upon(row: int, at_s: float, slack_s: float, unread: bool) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.frames.append(SeenFrame(Position(row, 0, at_s), "out", Malformed(b"", "", ""), 1))
    done: Any = SimpleNamespace(begun=Position(2, 0, 2.0), ended=Position(6, 0, 6.0))
    assert case_of(conn, slack_s=slack_s).has_unread(done) is unread


@pytest.mark.parametrize(
    ("garbage", "reported", "found"), [(3, 1, 0), (None, 1, 1), (5, 1, 1), (3, 2, 1)],
    ids=["behind what cannot be read", "for nothing", "before it", "twice"],
)  # fmt: skip
def test_a_goodbye_to_what_cannot_be_read_is_a_loss(garbage: int | None, reported: int, found: int) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.ready, conn.client_closing, conn.ended = (
        Position(1, 0, 1.0),
        Position(4, 0, 4.0),
        Position(6, 0, 6.0),
    )
    conn.garbage = None if garbage is None else Position(garbage, 0, float(garbage))
    case = case_of(conn)
    event = Event(event="session", t=0.0, n=1, fields={"what": "connection_lost"})
    case.events = [ReportedEvent(event) for _ in range(reported)]
    for heard in case.events:
        heard.at = Position(7, 0, 7.0)
    assert len(list(one_loss_event(case))) == found


@pytest.mark.parametrize(
    ("late_s", "answered", "protocol", "slack_s", "found"),
    [
        (0.0, 5, "narconi", 0.0, 0),
        (0.2, 5, "narconi", 0.25, 0),
        (0.5, 5, "narconi", 0.25, 1),
        (0.5, 5, "narconi", 0.0, 1),
        (0.0, 3, "narconi", 0.0, 1),
        (0.0, 5, PROTOCOL, 0.0, 1),
    ],
    ids=[
        "overdue",
        "real time",
        "later",
        "for nothing",
        "an answer to the server's goodbye",
        "answers have keys",
    ],
)
def test_a_goodbye_for_want_of_an_answer_is_a_loss(
    late_s: float, answered: int, protocol: str, slack_s: float, found: int
) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.ready, conn.client_closing, conn.ended = (
        Position(1, 0, 1.0),
        Position(4, 0, 4.0),
        Position(6, 0, 6.0),
    )
    conn.server_closing = Position(answered, 0, float(answered))
    case = case_of(conn, slack_s=slack_s)
    case.ended_s = 9.0
    case.material = material_of(protocol)
    overdue: Any = SimpleNamespace(op="publish", ended=Position(4, 0, 4.0 + late_s), args={})
    overdue.result = SimpleNamespace(ok=False, word="timeout")
    case.ops = [overdue]
    case.__dict__["reported"] = []
    heard = ReportedEvent(Event(event="session", t=0.0, n=1, fields={"what": "connection_lost"}))
    heard.at = Position(7, 0, 7.0)
    case.events = [heard]
    assert len(list(one_loss_event(case))) == found


@pytest.mark.parametrize("apt", [False, True])
def test_an_answer_that_may_be_read_may_be_called_unreadable(apt: bool) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.ended, conn.ended_by = Position(5, 0, 5.0), "client"
    asked, answer = Frame(), Frame()
    conn.frames += [
        SeenFrame(Position(2, 0, 2.0), "in", asked, 1),
        SeenFrame(Position(3, 0, 3.0), "out", answer, 1),
    ]
    question = Question(conn, asked, None, Position(2, 0, 2.0))
    question.answer = answer
    done: Any = SimpleNamespace(op="ask", args={}, begun=Position(1, 0, 1.0), ended=Position(4, 0, 4.0))
    done.result = SimpleNamespace(word="protocol")
    case = case_of(conn)
    case.material = material_of("narconi")
    asks = Asks(Frame, lambda args, frame: True, apt=lambda args, frame: apt)
    case.shared["asked"] = [(done, asks, [question])]
    assert bool(list(protocol_errors_for_a_reason(case))) is apt


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (MonitorReply(b"messages: 1"), 1),
        (MonitorReply(b"messages: 1\nsyncs: 0\n"), 1),
        (MonitorReply(b"messages: 1", (b"more",)), 0),
        (MonitorReply(b"messages: 1\n\n"), 0),
        (MonitorReply(b"messages: 1\nno colon\n"), 0),
    ],
)
def test_a_reply_of_the_monitor_that_the_daemon_never_sends_may_be_called_unreadable(
    reply: MonitorReply, found: int
) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    question = Question(conn, MonitorRequest(b"MONITOR"), None, Position(2, 0, 2.0))
    question.answer = reply
    done: Any = SimpleNamespace(
        op="pzq.monitor", args={}, begun=Position(1, 0, 1.0), ended=Position(4, 0, 4.0)
    )
    done.result = SimpleNamespace(ok=False, word="protocol")
    done.earliest_s = 60.0
    case = case_of(conn)
    case.material = material_of("pzq")
    case.shared["asked"] = [(done, case.traits.questions.ops["pzq.monitor"], [question])]
    assert len(list(gives_up_for_a_reason(case))) == found


@pytest.mark.parametrize(
    ("said_s", "slack_s", "code", "found"),
    [(5.9, 0.25, 500, 0), (5.9, 0.0, 500, 1), (5.0, 0.25, 500, 1), (5.9, 0.25, 404, 1), (6.6, 0.25, 500, 1)],
    ids=["crossed", "in memory", "long before", "another code", "later"],
)
def test_an_error_about_nothing_may_be_about_the_message_that_it_crossed(
    said_s: float, slack_s: float, code: int, found: int
) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    case = case_of(conn, slack_s=slack_s)
    place = ("q", "", 1)
    case.facts.written.append(Written(conn, Position(6, 0, 6.0), place, b"a"))
    case.facts.complaints.append(Complaint(conn, Position(5 if said_s < 6 else 9, 0, said_s), 500))
    done: Any = SimpleNamespace(result=None, op="publish", args={"target": "q"}, begun=Position(1, 0, 1.0))
    case.__dict__["reported"] = [ReportedOutcome(done, "nacked", code, place, Position(7, 0, 6.1), b"a")]
    case.stored = {"q": [(1, b"a")]}
    assert len(list(nack_needs_error(case))) == found
    assert len(list(failed_yet_stored(case))) == found
    conn.ready = Position(1, 0, 1.0)
    case.ended_s = 9.0
    assert len(list(complaints_are_told(case))) == found


@pytest.mark.parametrize(
    ("row", "protocol", "found"), [(3, "narconi", 0), (1, "narconi", 1), (5, "narconi", 1), (3, PROTOCOL, 1)]
)
def test_who_has_got_an_answer_that_cannot_be_read_need_not_wait_for_more(
    row: int, protocol: str, found: int
) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.frames.append(SeenFrame(Position(row, 0, float(row)), "out", Malformed(b"", "", ""), 1))
    question = Question(conn, Frame(), None, Position(2, 0, 2.0))
    done: Any = SimpleNamespace(op="ask", args={}, begun=Position(1, 0, 1.0), ended=Position(4, 0, 4.0))
    done.earliest_s, done.result = 9.0, SimpleNamespace(ok=False, word="connection")
    done.call = SimpleNamespace(timeout_ms=None)
    case = case_of(conn)
    case.material = material_of(protocol)
    case.shared["asked"] = [(done, Asks(Frame, lambda args, frame: True), [question])]
    assert len(list(gives_up_for_a_reason(case))) == found


@pytest.mark.parametrize(
    ("ended_s", "slack_s", "found"), [(3.4, 0.0, 1), (3.2, 0.0, 0), (4.4, 0.25, 0), (4.6, 0.25, 1)]
)
def test_how_long_an_op_may_go_on_behind_its_answer(ended_s: float, slack_s: float, found: int) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.ready = Position(1, 0, 1.0)
    question = Question(conn, Frame(), None, Position(2, 0, 2.0))
    question.answer, question.answered, question.accepted = Frame(), Position(3, 0, 3.0), True
    done: Any = SimpleNamespace(op="ask", args={}, begun=Position(1, 0, 1.5), ended=Position(4, 0, ended_s))
    done.timeout_s, done.result = 9.0, SimpleNamespace(ok=True, word="ok")
    case = case_of(conn, slack_s=slack_s)
    case.shared["asked"] = [(done, Asks(Frame, lambda args, frame: True), [question])]
    assert len(list(request_answer_counts(case))) == found


@pytest.mark.parametrize(
    ("reported", "said", "found"),
    [(19, 19, 0), (2, 19, 1), (None, 19, 0), (None, None, 1), (19, None, 1)],
    ids=["its code", "another code", "no code", "no code and no answer", "no answer"],
)
def test_a_refusal_needs_an_answer_though_not_its_code(
    reported: int | None, said: int | None, found: int
) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.ready = Position(1, 0, 1.0)
    question = Question(conn, Frame(), None, Position(2, 0, 2.0))
    if said is not None:
        question.answer, question.answered, question.code = Frame(), Position(3, 0, 3.0), said
        question.accepted = False
    done: Any = SimpleNamespace(op="ask", args={}, begun=Position(1, 0, 1.5), ended=Position(4, 0, 4.0))
    done.timeout_s, done.result = 9.0, SimpleNamespace(ok=False, word="refused", code=reported)
    case = case_of(conn)
    case.shared["asked"] = [(done, Asks(Frame, lambda args, frame: True), [question])]
    assert len(list(refused_needs_answer(case))) == found


@pytest.mark.parametrize(("what", "found"), [("disconnected", 0), ("connection_lost", 1), ("reconnected", 1)])
def test_the_end_that_was_asked_for_may_be_reported_after_the_close(what: str, found: int) -> None:
    done: Any = SimpleNamespace(
        op="close", args={}, phase="close", begun=Position(1, 0, 1.0), ended=Position(2, 0, 2.0)
    )
    done.result = SimpleNamespace(ok=True, word="ok", error=None)
    case = case_of()
    case.ops = [done]
    case.events = [ReportedEvent(Event(event="session", t=3.0, n=1, fields={"what": what}))]
    case.events[0].at = Position(3, 0, 3.0)
    texts = [one[0] if isinstance(one, tuple) else one for one in close_ends(case)]
    assert texts == [f"an event {what} after the close"] * found


@pytest.mark.parametrize(("late_s", "found"), [(0.1, 0), (1.0, 1)])
def test_what_a_close_has_ended_may_be_told_at_once_behind_it(late_s: float, found: int) -> None:
    done: Any = SimpleNamespace(
        op="close", args={}, phase="close", begun=Position(1, 0, 1.0), ended=Position(2, 0, 2.0)
    )
    done.result = SimpleNamespace(ok=True, word="ok", error=None)
    case = case_of()
    case.ops = [done]
    case.events = [ReportedEvent(Event(event="outcome", t=3.0, n=1, fields={"id": 1, "outcome": "unknown"}))]
    case.events[0].at = Position(3, 0, 2.0 + late_s)
    assert len(list(close_ends(case))) == found
