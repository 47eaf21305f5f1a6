"""What rules do not hold against a client: each excuse as wide as it is meant, and no wider."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.invariants.connections import silent_behind_goodbye
from conformance.invariants.requests import _agree, _has_lost, _is_unread, _stood, _turned_away
from conformance.sweep.case import Case
from conformance.sweep.facts import Facts, Question
from conformance.sweep.room import room_of
from conformance.sweep.run import last_words
from conformance.sweep.specs import Spec
from conformance.sweep.tape import Moment, Row
from conformance.sweep.view import Conn, Seen, read_tape
from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.nats.frames import Sub, Unsub
from fakebrokers.rabbitmq_stream.frames_messages import Unsubscribe

PROTOCOL = "rabbitmq-stream"


def case_of(*conns: Conn, slack_s: float = 0.0, protocol: str = PROTOCOL) -> Case:
    case = Case(Spec(protocol, "publish"), room_of(protocol), [], [], [])
    case.slack_s = slack_s
    case.__dict__["_read"] = ({conn.name: conn for conn in conns}, Facts())
    return case


@pytest.mark.parametrize(
    ("accepted", "refused", "codes"), [(3, 4, [2]), (1, 4, []), (3, 9, [])], ids=["its own", "older", "later"]
)
def test_a_refused_handshake_counts_for_the_op_that_was_open(
    accepted: int, refused: int, codes: list[int]
) -> None:
    conn = Conn("c2", Moment(accepted, 0, accepted))
    conn.turned_away = Moment(refused, 0, refused), 2
    done: Any = SimpleNamespace(begun=Moment(2, 0, 2), ended=Moment(6, 0, 6))
    assert _turned_away(case_of(conn), done) == codes


@pytest.mark.parametrize(("how", "at_s", "slack_s", "unread"), [
    ("rst", 1.9, 0.5, True), ("fin", 1.9, 0.5, False), ("rst", 1.0, 0.5, False), ("rst", 1.9, 0.0, False),
])  # fmt: skip
def test_what_a_reset_may_have_cost(how: str, at_s: float, slack_s: float, unread: bool) -> None:
    rows = [Row(0.0, "accept", "c1", ""), Row(2.0, "end", "c1", ("broker", how))]
    conn = read_tape(rows, room_of(PROTOCOL).model)["c1"]
    case = case_of(conn, slack_s=slack_s)
    assert case.may_be_unread(conn, Moment(1, 0, at_s)) is unread
    question = Question(conn, Unsub("1"), 1, Moment(0, 0, 0.0), Unsub("1"), Moment(1, 0, at_s))
    assert _is_unread(case, question) is unread


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
    assert _agree({"data": {"n": got}}, {"data": {"n": said}}) is same


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
    conn = Conn("c1", Moment(0, 0, 0.0))
    conn.parting = Moment(1, 0, 1.0)
    conn.frames = [Seen(Moment(2, 0, 1.1), "in", frame, 10)]
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
    conn = Conn("c1", Moment(0, 0, 0.0))
    conn.ended, conn.ended_by = Moment(5, 0, 1.1), "broker"
    question = Question(conn, Unsub("1"), 1, Moment(2, 0, 0.5))
    done: Any = SimpleNamespace(begun=Moment(1, 0, 0.5), ended=Moment(4, 0, 1.0))
    case = case_of(conn, slack_s=slack_s)
    assert _stood(case, question, done) is stood
    assert _has_lost(case, done) is not stood
