"""What rules do not hold against a client: each excuse as wide as it is meant, and no wider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from conformance.clients.adapter.last_words import last_words
from conformance.clients.adapter.messages import Error
from conformance.clients.adapter.result import Result
from conformance.rules.answers import agree
from conformance.rules.closing import close_ends
from conformance.rules.connections import one_loss_event, silent_behind_goodbye, state_agrees
from conformance.rules.deliveries import delivers_what_came
from conformance.rules.giving_up import _has_lost, _stood, gives_up_for_a_reason, sound
from conformance.rules.handshakes import handshake_first
from conformance.rules.life import tells_what_it_offers
from conformance.rules.outcomes import ack_needs_confirm
from conformance.rules.registry import May
from conformance.rules.requests import (
    _is_unread,
    _turned_away,
    ok_needs_answer,
    refused_needs_answer,
)
from conformance.rules.subscriptions import one_subscription_each, subscriptions
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import ArrivedFrame, Facts, Question, Record, Window, Written
from conformance.run.material import material_of
from conformance.run.reported import ReportedEvent, ReportedOutcome
from conformance.run.specs import Spec
from conformance.run.trace import Position, TraceRow
from conformance.run.view import Conn, SeenFrame, read_trace
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.moleculer.nats.frames import Sub, Unsub
from fakebrokers.rabbitmq_stream.frames import (
    DeclarePublisher,
    DeclarePublisherResponse,
    QueryPublisherSequence,
)
from fakebrokers.rabbitmq_stream.frames_consuming import Unsubscribe

PROTOCOL = "rabbitmq-stream"
BODY = {"b64": "YQ=="}
REFUSED = {"kind": "refused", "text": "", "definite": True}


def at(row: int) -> Position:
    return Position(row, 0, float(row))


def op(name: str, begun: int, ended: int, result: Result, /, **args: Any) -> RunOp:
    given = {"session": "s1", **args}
    done = RunOp(begun, name, given, given_ms=None, timeout_s=9.0, begun=at(begun), phase="")
    done.ended, done.result = at(ended), result
    return done


def message(position: int, row: int) -> ReportedEvent:
    fields = {"sub": "a", "position": str(position), "body": BODY, "ts": None}
    heard = ReportedEvent(SimpleNamespace(event="message", n=row, fields=fields))  # type: ignore[arg-type]
    heard.at = at(row)
    return heard


def ended(name: str, **how: Any) -> Result:
    return Result(1, name, not how.keys() & {"error", "hang"}, 0, 0, **how)


def failed(name: str, kind: str) -> Result:
    return ended(name, error=msgspec.convert({"kind": kind, "text": "", "definite": False}, Error))


def case_of(*conns: Conn, slack_s: float = 0.0, protocol: str = PROTOCOL) -> Case:
    case = Case(Spec(protocol, "publish"), material_of(protocol), [], [], [])
    case.slack_s = slack_s
    case.__dict__["_read"] = ({conn.name: conn for conn in conns}, Facts())
    return case


@pytest.mark.parametrize(
    ("accepted", "refused", "codes"), [(3, 4, [2]), (1, 4, []), (3, 9, [])], ids=["its own", "older", "later"]
)
def test_a_refused_handshake_counts_for_the_op_that_was_open(
    accepted: int, refused: int, codes: list[int]
) -> None:
    conn = Conn("c2", Position(accepted, 0, accepted))
    conn.turned_away = Position(refused, 0, refused), 2
    done: Any = SimpleNamespace(begun=Position(2, 0, 2), ended=Position(6, 0, 6))
    assert _turned_away(case_of(conn), done) == codes


@pytest.mark.parametrize(("how", "at_s", "slack_s", "unread"), [
    ("rst", 1.9, 0.5, True), ("fin", 1.9, 0.5, False), ("rst", 1.0, 0.5, False), ("rst", 1.9, 0.0, False),
])  # fmt: skip
def test_what_a_reset_may_have_cost(how: str, at_s: float, slack_s: float, unread: bool) -> None:
    rows = [TraceRow(0.0, "accept", "c1", ""), TraceRow(2.0, "end", "c1", ("broker", how))]
    conn = read_trace(rows, material_of(PROTOCOL).traits.reading)["c1"]
    case = case_of(conn, slack_s=slack_s)
    assert case.may_be_unread(conn, Position(1, 0, at_s)) is unread
    question = Question(conn, Unsub("1"), 1, Position(0, 0, 0.0), Unsub("1"), Position(1, 0, at_s))
    assert _is_unread(case, question) is unread


@pytest.mark.parametrize(
    ("accepted", "lost", "blamed"), [(3, 4, False), (1, 4, True), (3, 7, True), (3, None, True)]
)
def test_an_op_may_need_a_connection_besides_the_one_on_which_it_has_asked(
    accepted: int, lost: int | None, blamed: bool
) -> None:
    asked_on, besides = Conn("c1", at(0)), Conn("c2", at(accepted))
    besides.ended, besides.ended_by = None if lost is None else at(lost), "broker"
    case = case_of(asked_on, besides)
    args = {"target": "S", "name": "q"}
    frame = QueryPublisherSequence(correlation_id=1, reference="q", stream="S")
    case.ops = [op("rmqs.query_sequence", 2, 6, failed("rmqs.query_sequence", "connection"), **args)]
    case.facts.questions = [Question(asked_on, frame, None, at(5))]
    assert bool(list(gives_up_for_a_reason(case))) is blamed


@pytest.mark.parametrize(("asked_ms", "blamed"), [(3000.0, False), (None, True), (8000.0, True)])
def test_a_fixed_deadline_is_the_latest_moment(asked_ms: float | None, blamed: bool) -> None:
    """A library with a ticker gives up after the application's time-out, and before its own latest moment."""
    conn = Conn("c1", at(0))
    case = case_of(conn)
    args = {"target": "S", "name": "q"}
    done = op("rmqs.query_sequence", 2, 6, failed("rmqs.query_sequence", "timeout"), **args)
    done.given_ms = asked_ms
    frame = QueryPublisherSequence(correlation_id=1, reference="q", stream="S")
    case.ops = [done]
    case.facts.questions = [Question(conn, frame, None, at(5))]
    assert bool(list(gives_up_for_a_reason(case))) is blamed


@pytest.mark.parametrize(("over", "slack_s", "stands"), [(6, 2.0, False), (6, 0.0, True), (9, 2.0, True)])
def test_the_broker_may_see_the_end_of_a_connection_later(over: int, slack_s: float, stands: bool) -> None:
    conn = Conn("c1", at(0))
    conn.ready, conn.ended, conn.ended_by = at(1), at(over), "client"
    assert sound(case_of(conn, slack_s=slack_s), at(2), at(5)) is stands


@pytest.mark.parametrize(
    ("stream", "asked", "code", "blamed"),
    [("S", 3, 17, False), ("S", 3, 2, True), ("T", 3, 17, True), ("S", 1, 17, True)],
)
def test_what_an_op_needs_may_be_refused(stream: str, asked: int, code: int, blamed: bool) -> None:
    """Its own question is not asked then."""
    conn = Conn("c1", at(0))
    case = case_of(conn)
    frame = DeclarePublisher(correlation_id=1, publisher_id=1, reference="q", stream=stream)
    answer = DeclarePublisherResponse(correlation_id=1, code=code)
    case.facts.questions = [Question(conn, frame, 1, at(asked), answer, at(4), False, code)]
    refused = ended("rmqs.query_sequence", error=msgspec.convert({**REFUSED, "code": 17}, Error))
    case.ops = [op("rmqs.query_sequence", 2, 5, refused, target="S", name="q")]
    assert bool(list(refused_needs_answer(case))) is blamed


@pytest.mark.parametrize(("how", "blamed"), [("hang", False), ("timeout", True)])
def test_a_subscription_whose_op_is_still_open_may_be_there(how: str, blamed: bool) -> None:
    """What was told to have failed may not."""
    conn = Conn("c1", at(0))
    case = case_of(conn)
    result = ended("subscribe", hang=True) if how == "hang" else failed("subscribe", how)
    case.ops = [op("subscribe", 1, 3, result, sub="a", target="S")]
    case.marks["subscribed"] = at(9)
    case.facts.windows = [Window(conn, "S", 0, {}, at(4), opened=at(5))]
    assert bool(list(one_subscription_each(case))) is blamed


@pytest.mark.parametrize(("hangs", "reported"), [(True, []), (False, ["b"])])
def test_a_subscription_that_may_come_yet_is_not_over(hangs: bool, reported: list[str]) -> None:
    """Whose a window of the same target is, nobody can tell then."""
    conn = Conn("c1", at(0))
    case = case_of(conn)
    case.ops = [
        op("subscribe", 1, 9, ended("subscribe", hang=True), sub="a", target="S")
        if hangs
        else op("subscribe", 1, 2, ended("subscribe"), sub="a", target="S"),
        op("unsubscribe", 3, 4, failed("unsubscribe", "closed"), sub="a"),
        op("subscribe", 5, 6, ended("subscribe"), sub="b", target="S"),
    ]
    assert [done.args["sub"] for done, _ in subscriptions(case) if done.args["sub"] == "b"] == reported


@pytest.mark.parametrize(("garbage", "blamed"), [(2, False), (4, True), (None, True)])
def test_nobody_can_say_what_is_answered_behind_what_cannot_be_read(
    garbage: int | None, blamed: bool
) -> None:
    conn = Conn("c1", at(0))
    conn.garbage = None if garbage is None else at(garbage)
    case = case_of(conn)
    done = op("publish", 1, 6, ended("publish"), target="S")
    case.facts.written = [Written(conn, at(3), ("S", "", 1), b"a")]
    case.__dict__["reported"] = [ReportedOutcome(done, "acked", None, ("S", "", 1), at(6), b"a")]
    assert bool(list(ack_needs_confirm(case))) is blamed


@pytest.mark.parametrize("rule", [handshake_first, ok_needs_answer, one_loss_event, state_agrees])
@pytest.mark.parametrize("odd", [True, False])
def test_a_handshake_of_which_something_cannot_be_read_may_be_done(
    rule: Callable[[Case], Iterator[Any]], odd: bool
) -> None:
    """For a client that reads odd frames; elsewhere it is blamed."""
    conn = Conn("c1", at(0))
    asked = QueryPublisherSequence(correlation_id=1, reference="q", stream="S")
    conn.frames = [SeenFrame(at(2), "out", Malformed(data=b"", problem=""), 0)] if odd else []
    conn.frames.append(SeenFrame(at(4), "in", asked, 0))
    case = case_of(conn)
    case.ops = [
        op("connect", 1, 3, ended("connect")),
        op("state", 5, 6, ended("state", value={"open": True})),
    ]
    case.events = [ReportedEvent(SimpleNamespace(event="session", n=1, fields={"what": "connection_lost"}))]  # type: ignore[arg-type]
    case.events[0].at = at(7)
    [(found, *_)] = list(rule(case))
    assert (isinstance(found, May) and found.word == "reads_odd") is odd


@pytest.mark.parametrize(("session", "blamed"), [("s1", True), ("a sign of life", False)])
def test_a_session_that_was_never_connected_need_not_be_open(session: str, blamed: bool) -> None:
    """Behind an op without an answer the adapter is asked for such a session, to see whether it lives."""
    conn = Conn("c1", at(0))
    asked = QueryPublisherSequence(correlation_id=1, reference="q", stream="S")
    conn.ready, conn.frames = at(2), [SeenFrame(at(4), "in", asked, 0)]
    case = case_of(conn)
    state = op("state", 5, 6, ended("state", value={"open": False}), session=session)
    case.ops = [op("connect", 1, 3, ended("connect")), state]
    assert bool(list(state_agrees(case))) is blamed


@pytest.mark.parametrize(("stderr", "words"), [
    ("thread 'w' (8) panicked at a.rs:2:5:\ncapacity overflow\nstack backtrace:\n", "capacity overflow"),
    ("memory allocation of 12884901888 bytes failed\n", "memory allocation of 12884901888 bytes failed"),
    ("a warning\n", ""),
])  # fmt: skip
def test_what_a_client_says_last(stderr: str, words: str) -> None:
    assert last_words(stderr).endswith(words) and bool(words) is bool(last_words(stderr))


@pytest.mark.parametrize(
    ("got", "said", "same"),
    [
        (1.0, 1, True),
        (2**53, 2**53 + 1, False),
        (float(2**53), 2**53 + 1, False),
        (True, 1, False),
        ("7", 7, True),
    ],
)
def test_the_same_number_written_otherwise_is_the_same(got: Any, said: Any, same: bool) -> None:
    assert agree({"data": {"n": got}}, {"data": {"n": said}}) is same


@pytest.mark.parametrize(
    ("protocol", "frame", "is_silent"),
    [
        ("moleculer", Unsub("1"), True),
        ("moleculer", Sub("MOL.PING", "1"), False),
        ("rabbitmq-stream", Unsubscribe(correlation_id=1, subscription_id=1), False),
    ],
    ids=["the server is told too", "something is begun", "the server has been told"],
)
def test_a_goodbye_to_others_is_none_to_the_server(protocol: str, frame: Frame, is_silent: bool) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.client_closing = Position(1, 0, 1.0)
    conn.frames = [SeenFrame(Position(2, 0, 1.1), "in", frame, 10)]
    case = case_of(conn, protocol=protocol)
    assert (not list(silent_behind_goodbye(case))) is is_silent


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        ("[t] WARN a/B: no\n[t] FATAL a/B: two of one name\n", "[t] FATAL a/B: two of one name"),
        ("at x\nTypeError: no\n", "TypeError: no"),
        ("[t] ERROR a/B: FATALLY late\n", ""),
    ],
)
def test_what_a_client_says_at_its_end(stderr: str, words: str) -> None:
    assert last_words(stderr) == words


@pytest.mark.parametrize(("slack_s", "stood"), [(0.25, False), (0.0, True)])
def test_in_real_time_a_loss_may_be_noted_a_little_behind_what_it_ends(slack_s: float, stood: bool) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.ended, conn.ended_by = Position(5, 0, 1.1), "broker"
    question = Question(conn, Unsub("1"), 1, Position(2, 0, 0.5))
    done: Any = SimpleNamespace(begun=Position(1, 0, 0.5), ended=Position(4, 0, 1.0))
    case = case_of(conn, slack_s=slack_s)
    assert _stood(case, question, done) is stood
    assert _has_lost(case, done) is not stood


@pytest.mark.parametrize(
    ("again", "got", "found"),
    [
        (True, [0, 2, 1, 3], []),
        (False, [0, 2, 1, 3], ["the message at 1 was delivered unasked"]),
        (True, [0, 2, 1], ["the message at 3 came"]),
        (True, [0, 2, 9, 3], ["the message at 9 was delivered unasked"]),
    ],
    ids=["may surface again", "may not", "one is missing", "never came"],
)
def test_what_is_surfaced_again_hides_nothing(again: bool, got: list[int], found: list[str]) -> None:
    """A position below what has come already is stale."""
    conn = Conn("c1", at(0))
    case = case_of(conn)
    case.ended_s = 99.0
    case.contract = SimpleNamespace(allows=lambda word: again)  # type: ignore[assignment]
    case.ops = [op("subscribe", 1, 4, ended("subscribe"), sub="a", target="S")]
    window = Window(conn, "S", 0, {"type": "first"}, at(2), opened=at(3))
    for row, position in enumerate((0, 2, 1, 3), 5):
        record = Record(position, b"a")
        window.arrivals.append(ArrivedFrame(at(row), (record,), next_position=position + 1))
    case.facts.windows = [window]
    case.events = [message(position, 10 + number) for number, position in enumerate(got)]
    said = [str(violation[0]) for violation in delivers_what_came(case)]
    assert [any(text.startswith(start) for text in said) for start in found] == [True] * len(found)
    assert len(said) == len(found), said


@pytest.mark.parametrize(
    ("got", "found"),
    [
        ([0, 1, 2, 3], []),
        ([2, 3], []),
        ([], ["the message at 2 came"]),
        ([0, 2], ["the message at 3 came"]),
        ([1, 0, 2, 3], ["the message at 0 was delivered unasked"]),
        ([3, 2], ["the message at 2 was delivered out of order", "the message at 3 was delivered unasked"]),
    ],
    ids=[
        "delivered",
        "thrown away",
        "the good ones are missing",
        "a good one is missing",
        "a stale one",
        "turned",
    ],
)
def test_intact_messages_of_a_damaged_frame_may_be_delivered(got: list[int], found: list[str]) -> None:
    case = case_of(conn := Conn("c1", at(0)))
    case.ended_s = 99.0
    case.contract = SimpleNamespace(allows=lambda word: False)  # type: ignore[assignment]
    case.ops = [op("subscribe", 1, 4, ended("subscribe"), sub="a", target="S")]
    doubtful, certain = (tuple(Record(place, b"a") for place in places) for places in ((0, 1), (2, 3)))
    arrivals = [ArrivedFrame(at(5), (), 2, True, doubtful), ArrivedFrame(at(6), certain, 4)]
    window = Window(conn, "S", 0, {"type": "first"}, at(2), opened=at(3), arrivals=arrivals)
    case.facts.windows = [window]
    case.events = [message(position, 10 + number) for number, position in enumerate(got)]
    said = [str(violation[0]) for violation in delivers_what_came(case)]
    assert [text.startswith(start) for text, start in zip(said, found, strict=True)] == [True] * len(found)


@pytest.mark.parametrize(
    ("kind", "definite", "connected", "fails"),
    [
        ("closed", True, False, False),
        ("closed", False, False, True),
        ("connection", True, False, True),
        ("closed", True, True, True),
    ],
    ids=["nothing to hold", "in doubt", "another error", "there was a session"],
)
def test_a_close_with_nothing_to_close_ends_nothing(
    kind: str, definite: bool, connected: bool, fails: bool
) -> None:
    """ADAPTER.md, Closing: a library may give nothing to hold before its connect has returned."""
    refused = msgspec.convert({"kind": kind, "text": "", "definite": definite}, Error)
    case = case_of()
    case.ops = [
        *([op("connect", 0, 1, ended("connect"))] if connected else []),
        op("connect", 2, 9, failed("connect", "connection")),
        op("close", 3, 4, ended("close", error=refused)),
    ]
    for done in case.ops:
        done.phase = done.op
    assert bool(list(close_ends(case))) is fails


@pytest.mark.parametrize(("actions", "fails"), [((), False), (("s.echo",), True)])
def test_who_offers_nothing_need_not_say_so(
    actions: tuple[str, ...], fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/protocols/moleculer.md, 10: without a service no INFO is broadcast."""
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.ready = Position(1, 0, 0.5)
    case = case_of(conn, protocol="moleculer")
    case.ended_s = 20.0
    offered = [(Position(0, 0, 0.0), (frozenset(actions), frozenset()))]
    monkeypatch.setattr(type(case.traits.peers), "offered", lambda peers, case: offered)
    assert bool(list(tells_what_it_offers(case))) is fails
