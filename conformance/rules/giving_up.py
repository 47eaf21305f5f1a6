"""What is asked ends: with its answer, with what it needs, and not before its time without a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from conformance.rules.registry import May, Violation, invariant
from conformance.rules.requests import (
    AT_ONCE_S,
    SLACK_S,
    asked_by_ops,
    has_rival,
    has_twin,
    keeps_connections,
)
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Question, Should
from conformance.run.trace import Position
from conformance.run.traits import Asks
from conformance.run.view import Conn
from fakebrokers.core.frames import Malformed, Role

#: What languages call an error in the program itself: no state of server or network is a reason for one.
MISTAKES = re.compile(
    r"\b(AttributeError|IndexError|KeyError|NameError|TypeError|UnboundLocalError|AssertionError"
    r"|InvalidStateError|ReferenceError|NullPointerException|ClassCastException"
    r"|(String|Array)?IndexOutOfBoundsException|nil pointer dereference|index out of range)\b"
)
OF_THE_ADAPTER = ("state", "stats", "set_clock", "set_counter", "raise_next")  #: ops that count and prepare


@invariant("loss-ends-requests")
def loss_ends_requests(case: Case) -> Iterator[Violation]:
    """The end of a connection ends at once what was asked on it, unless the answer can come over another.

    Why:
        Each request waits for its full time-out after a loss: a failover of a second becomes an outage of
        half a minute.

    Rests on:
        RabbitMQ Stream: correlation ids belong to a connection (docs/protocols/rabbitmq-stream.md, 2).
        Narconi: an HTTP response comes on the connection of its request (RFC 9112, 9.3).
        Moleculer: calls to a node that sent DISCONNECT end with RequestRejectedError
            (docs/protocols/moleculer.md, 3).
        elsewhere: common sense: what cannot be answered any more has failed.

    Example:
        rmqs.metadata ended 9.8 s after its connection.
    """
    if case.traits.connecting.unseen_connections or case.traits.questions.answers_move:
        return
    for done, _, questions in asked_by_ops(case):
        if len(questions) != 1 or done.ended is None or has_twin(case, done):
            continue
        [one] = questions
        lost = one.conn.ended
        if lost is None or lost < one.asked or (one.answered is not None and one.answered < lost):
            continue
        if done.ended.t > lost.t + AT_ONCE_S + case.slack_s:
            text = f"{done.op} ended {done.ended.t - lost.t:.1f} s after its connection"
            yield May("waits", text), lost, done.ended


@invariant("loss-ends-requests")
def leaving_ends_requests(case: Case) -> Iterator[Violation]:
    """When a node leaves, what the client has asked of it ends at once, streams too."""
    for done, _, questions in asked_by_ops(case):
        if len(questions) != 1 or done.ended is None or has_twin(case, done) or questions[0].to is None:
            continue
        [one] = questions
        left = _left(case, one)
        flows = [flow for flow in case.facts.flows if flow.question is one and flow.direction == "out"]
        over = flows[0].whole if flows else one.answered
        if not left or (over is not None and over < left[0]):
            continue
        if done.ended.t > left[0].t + AT_ONCE_S + case.slack_s:
            yield (
                f"{done.op} went on for {done.ended.t - left[0].t:.1f} s after {one.to} had left",
                left[0],
                done.ended,
            )


def _left(case: Case, question: Question) -> list[Position]:
    """When the client could read that the node had left that it has asked."""
    return [
        dropped.at
        for dropped in case.facts.dropped
        if dropped.target == question.to and dropped.at > question.asked
        if dropped.conn is question.conn or case.is_one_session
        if dropped.conn.server_closing is None or dropped.at < dropped.conn.server_closing
    ]


@invariant("loss-ends-requests")
def loss_ends_handshakes(case: Case) -> Iterator[Violation]:
    """What waits for its very first connection ends at once with that connection."""
    if not case.traits.connecting.connects_late:
        return
    first: dict[Any, Question] = {}
    for question in case.facts.questions:
        if type(question.frame).spec.role_in("in") is Role.HANDSHAKE and question.to is not None:
            first.setdefault(question.to, question)
    for done in case.done("publish", "subscribe"):
        asked = first.get(done.args["target"])
        if asked is None or done.ended is None or not done.begun < asked.asked < done.ended:
            continue
        lost = asked.conn.ended
        if lost is None or asked.answered is not None:
            continue
        if done.ended.t > lost.t + AT_ONCE_S + case.slack_s and done.args.get("wait", True):
            yield (
                f"{done.op} went on for {done.ended.t - lost.t:.1f} s after its connection",
                lost,
                done.ended,
            )


@invariant("fails-fast")
def fails_fast(case: Case) -> Iterator[Violation]:
    """Without a connection, and without automatic reconnect, an op fails at once.

    Why:
        The application waits for a time-out that cannot end well, with a queue growing before it.

    Rests on:
        common sense: where no connection will come, no answer can.

    Example:
        publish took 5.0 s without a connection.
    """
    if case.reconnects or case.traits.connecting.connects_late:
        return
    needy = {*case.traits.questions.ops, "publish", "publish_many", "subscribe"}
    for done in case.ops:
        if done.op not in needy or done.ended is None or done.result is None or done.result.hang:
            continue
        if any(conn.stands(done.begun) for conn in case.conns.values()):
            continue
        if done.ended.t - done.begun.t > AT_ONCE_S + case.slack_s:
            text = f"{done.op} took {done.ended.t - done.begun.t:.1f} s without a connection"
            yield May("waits", text), done.begun


@invariant("fails-for-a-reason")
def gives_up_for_a_reason(case: Case) -> Iterator[Violation]:
    """A request is given up before its deadline only if its connection is lost, or the application called
    it off.

    Why:
        Applications see errors without a cause, and repeat what was done.

    Rests on:
        all: the deadline is the application's; before it only a loss, a refusal or an unreadable answer
            ends a request.
        Narconi: HTTP answers come in the order of their requests, so a bad one ends the connection (RFC
            9112, 9.3.2).

    Example:
        rmqs.query_offset was given up (timeout) after 0.3 s of 5 s, and no connection was lost.
    """
    closes = [done.begun for done in case.done("close", "abort", "connect")]
    for done, asks, questions in asked_by_ops(case):
        result = done.result
        if result is None or done.ended is None or result.ok or not questions:
            continue
        if result.word in ("refused", "auth", "invalid", "cancelled", "hang", "crashed"):
            continue
        if done.ended.t >= done.begun.t + done.earliest_s - SLACK_S - case.slack_s:
            continue
        if any(done.begun < close < done.ended for close in closes):
            continue
        if _may_be_called_unreadable(case, done, asks, questions):
            continue
        if _may_have_no_answer(case, done, questions, done.ended) or _has_lost_its_own(case, done):
            continue
        if all(_stood(case, one, done) for one in questions):
            yield f"{done.op} was given up ({result}), and no connection was lost", done.ended


def _may_be_called_unreadable(case: Case, done: RunOp, asks: Asks, questions: Sequence[Question]) -> bool:
    """Whether an answer came that says nothing to every client, or is not by the letter of the protocol."""
    answers = [one.answer for one in questions if one.answer is not None]
    if asks.apt and not all(asks.apt(done.args, answer) for answer in answers):
        return True
    is_protocol = done.result is not None and done.result.word == "protocol"
    return is_protocol and any(map(case.traits.reading.is_odd, answers))


def _may_have_no_answer(case: Case, done: RunOp, questions: Sequence[Question], ended: Position) -> bool:
    """Whether who has to answer may be taken for dead, be gone, or have answered what cannot be read; or
    another op has closed the same."""
    if case.notes.silent or (done.op in case.traits.delivery.closing and has_twin(case, done)):
        return True
    asked = {one.to for one in questions}
    if any(
        done.begun < dropped.at < ended and asked & {None, dropped.target} for dropped in case.facts.dropped
    ):
        return True
    return any(
        case.traits.questions.is_silent(case, one, ended)
        or (case.traits.answers_in_order and _is_odd(one, ended))
        for one in questions
    )


def _has_lost_its_own(case: Case, done: RunOp) -> bool:
    """Whether a connection was lost, or refused, that came while an op was open: the op may have needed it
    besides the one on which it has asked."""
    for conn in case.conns.values():
        marks = [conn.lost(), conn.turned_away[0] if conn.turned_away is not None else None]
        over = min((mark for mark in marks if mark is not None), default=None)
        if over is None or done.ended is None or conn.accepted < done.begun:
            continue
        if case.may_precede(over, done.ended):
            return True
    return False


@invariant("fails-for-a-reason")
def no_mistake_is_a_reason(case: Case) -> Iterator[Violation]:
    """Where the server keeps to the protocol, no loss and no refusal makes an op fail for an error in the
    client's program, such as a missing attribute.
    """
    if case.spec.changes or not case.is_truthful:
        return  # a library may leave it to its language to refuse a number where text is due
    if keeps_connections(case):
        return  # another rule looks at that
    for done in case.ops:
        found = MISTAKES.search(str(done.result)) if done.result is not None else None
        if not found or done.result is None or done.op in OF_THE_ADAPTER or case.has_unread(done):
            continue
        if done.result.word == "internal":
            yield f"{done.op} failed inside the client: {done.result}", done.ended


@invariant("fails-for-a-reason")
def no_connection_for_a_reason(case: Case) -> Iterator[Violation]:
    """An op fails for lack of a connection only where one was lost, or none is there yet."""
    if case.facts.dropped or case.facts.refused or case.traits.questions.answers_move or not case.is_truthful:
        return  # the one to answer may be gone, or is not at the address that the client got
    if case.notes.unreachable:
        return  # an op that needs a connection of its own gets none, while the others are open
    for done in case.ops:
        result = done.result
        if result is None or result.word != "connection" or done.ended is None or done.op == "connect":
            continue
        if any(done.begun < end.begun < done.ended for end in case.done("close", "abort")):
            continue
        standing = sum(conn.stands(done.begun) for conn in case.conns.values())
        if standing < case.notes.sessions:
            continue  # whose connection is open cannot be known
        if case.traits.connecting.unseen_connections and _has_lost(case, done):
            continue  # what it had of its own may have been lost with them, before it was in the trace
        if sound(case, done.begun, done.ended):
            text = f"{done.op} failed: {result}, and all connections are open"
            yield Should(text) if case.notes.partly_unreachable else text, done.begun, done.ended


def _has_lost(case: Case, done: RunOp) -> bool:
    """Whether the broker has ended a connection about when an op was open."""
    assert done.ended is not None
    since_s, until_s = done.begun.t - case.slack_s, done.ended.t + case.slack_s
    ends = [conn.ended for conn in case.conns.values() if conn.ended_by == "broker"]
    return any(end is not None and since_s <= end.t <= until_s for end in ends)


@invariant("fails-for-a-reason")
def protocol_errors_for_a_reason(case: Case) -> Iterator[Violation]:
    """An answer is called unreadable only where something unreadable has come, or something that was not
    asked for.
    """
    if not case.traits.answers_in_order or not case.is_truthful:
        return  # elsewhere it may be another answer, and what ends the connection is looked at by itself
    for done, asks, questions in asked_by_ops(case):
        if done.result is None or done.result.word != "protocol" or len(questions) != 1 or done.ended is None:
            continue
        conn, answer = questions[0].conn, questions[0].answer
        if answer is not None and asks.apt and not asks.apt(done.args, answer):
            continue
        if conn.ended is None or conn.ended_by == "broker" or not _was_plain(conn, done.ended):
            continue
        yield f"{done.op} ended {done.result}, and all that came can be read", questions[0].asked, done.ended


def _was_plain(conn: Conn, until: Position) -> bool:
    """Whether all that came could be read, and no more came than was asked for."""
    came = [seen for seen in conn.of("out") if seen.at < until]
    asked = [seen for seen in conn.of("in") if seen.at < until]
    is_odd = conn.garbage is not None or any(isinstance(seen.frame, Malformed) for seen in came)
    return not is_odd and len(came) <= len(asked)


def sound(case: Case, begun: Position, ended: Position) -> bool:
    """Whether each connection that there was has been open all the time, or was replaced before."""
    conns = [conn for conn in case.conns.values() if conn.accepted < ended]
    serving = [conn for conn in conns if conn.serves(begun) and conn.serves(ended)]
    serving = [conn for conn in serving if not _ends_with(case, conn, ended)]
    since = max((conn.ready for conn in serving if conn.ready is not None), default=None)
    gone = [conn for conn in conns if conn not in serving]
    if gone and not case.reconnects:
        return False
    if len(serving) < case.notes.sessions:
        return False  # it may be another session's connection that is open
    return since is not None and all(conn.ended is not None and conn.ended < since for conn in gone)


def _ends_with(case: Case, conn: Conn, ended: Position) -> bool:
    """Whether the broker sees the end of a connection so soon after an op that the client ended it first."""
    return conn.ended is not None and ended < conn.ended and conn.ended.t < ended.t + case.slack_s


def _stood(case: Case, question: Question, done: RunOp) -> bool:
    """Whether a question's connection was sound until its op ended."""
    conn = question.conn
    marks = (conn.ended, conn.server_closing, conn.garbage, conn.client_closing, conn.reading_stopped)
    return done.ended is None or not any(mark and case.may_precede(mark, done.ended) for mark in marks)


def _is_odd(question: Question, until: Position) -> bool:
    """Whether something that cannot be read has come instead of an answer."""
    seen = question.conn.of("out")
    return any(isinstance(one.frame, Malformed) and question.asked < one.at < until for one in seen)


@invariant("loss-ends-requests")
def loss_ends_connect(case: Case) -> Iterator[Violation]:
    """A connect whose only connection is over, was refused, or got an unreadable answer, ends at once."""
    if case.notes.unreachable:
        return  # further attempts leave no trace
    for done in case.done("connect"):
        if has_rival(case, done):
            continue
        if done.ended is None or len(done.args["endpoints"]) != 1 or done.result is None or done.result.ok:
            continue
        conns = [conn for conn in case.conns.values() if done.begun < conn.accepted < done.ended]
        if len(conns) != 1:
            continue
        turned = conns[0].turned_away[0] if conns[0].turned_away is not None else None
        marks = (conns[0].lost(), turned, conns[0].spoiled)
        over = min((mark for mark in marks if mark is not None), default=None)
        if over is not None and done.ended.t > over.t + AT_ONCE_S + case.slack_s:
            text = f"connect went on for {done.ended.t - over.t:.1f} s after its connection"
            reads_on = over in (conns[0].garbage, conns[0].spoiled)
            yield May("reads_on" if reads_on else "waits", text), over, done.ended
