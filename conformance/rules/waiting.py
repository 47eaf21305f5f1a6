"""What waits for a connection goes on once there is one."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.rules.giving_up import sound
from conformance.rules.registry import Violation, invariant
from conformance.rules.requests import AT_ONCE_S, asked_by_ops, has_twin
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Question
from conformance.run.trace import Position

ASKS_S = 1.0  #: what a client may take to ask once there is a connection
WRITES_S = 5.0  #: what it may pause before it tries again to write a message


@invariant("asks-once-it-can")
def asks_once_it_can(case: Case) -> Iterator[Violation]:
    """An op that waits for a connection sends its request once there is one.

    Why:
        Requests made during an outage end by time-out although the broker is back: the outage lasts longer
        for the application than for the network.

    Rests on:
        common sense: an op that waits for a connection waits for nothing else.

    Example:
        rmqs.metadata was not sent, and there was a connection.
    """
    if case.traits.questions.answers_move:
        return  # it may wait for another
    for done, _, questions in asked_by_ops(case):
        result = done.result
        if result is None or result.word not in ("timeout", "hang") or questions or done.ended is None:
            continue
        if done.op in case.traits.delivery.closing and has_twin(case, done):
            continue  # what closes is asked for once
        late = Position(done.ended.row, 0, done.ended.t)
        early = next((m for m, row in case.positions() if row.t > done.ended.t - ASKS_S), None)
        if early is not None and early > done.begun and sound(case, early, late):
            yield f"{done.op} was not sent, and there was a connection", early, done.ended


@invariant("asks-once-it-can")
def writes_once_it_can(case: Case) -> Iterator[Violation]:
    """A message that waits for a connection is written once there is one and no answer is outstanding."""
    written = {one.body for one in case.facts.written}
    if None in written or not _nothing_holds_up(case):
        return  # what is in a packed message is not known
    for reported in case.reported:
        done, late = reported.done, reported.done.ended
        if late is None or reported.body in written or not _waited_in_vain(done):
            continue
        early = next((m for m, row in case.positions() if row.t > late.t - WRITES_S), None)
        if early is None or early < done.begun or not sound(case, early, late):
            continue
        if all(one.answered is not None and one.answered < early for one in _asked_by(case, late)):
            yield f"{reported} was not written, and there was a connection", early, late


@invariant("asks-once-it-can")
def connects_once_it_can(case: Case) -> Iterator[Violation]:
    """Where connections are made as they are needed, an op whose connection has ended makes another."""
    if not case.traits.connecting.connects_late or case.hits or case.notes.unreachable:
        return
    ends = [conn.ended for conn in case.conns.values()]
    for done, _, questions in asked_by_ops(case):
        result, begun, ended = done.result, done.begun, done.ended
        if result is None or result.word not in ("timeout", "hang", "connection") or questions:
            continue
        came = [conn.accepted for conn in case.conns.values()]
        before = [end for at, end in zip(came, ends, strict=True) if at < begun]
        if any(begun < at and (ended is None or at < ended) for at in came) or not before:
            continue
        if all(end is not None and end.t + AT_ONCE_S + case.slack_s < begun.t for end in before):
            yield f"{done.op} was not sent, and no connection was made for it ({result})", begun, ended


def _nothing_holds_up(case: Case) -> bool:
    """Whether all connects at once, nobody refuses or leaves anything, and each message has its outcome."""
    if (
        case.traits.questions.answers_move
        or case.traits.connecting.connects_late
        or not case.is_truthful
        or case.facts.dropped
    ):
        return False
    if any(one.accepted is False for one in case.facts.questions):
        return False  # a refusal makes its own pauses
    settled = {one.place for one in case.facts.settled}
    return all(one.place in settled for one in case.facts.written)


def _waited_in_vain(done: RunOp) -> bool:
    return done.result is not None and done.result.word in ("timeout", "hang")


def _asked_by(case: Case, at: Position) -> Iterator[Question]:
    """What was asked before, on connections that are open."""
    return (one for one in case.facts.questions if one.asked < at and one.conn.stands(at))
