"""Requests end as they were answered, and end with their connection."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.invariants.registry import May, Violation, invariant
from conformance.sweep.bases import Done
from conformance.sweep.case import Case
from conformance.sweep.facts import Question
from conformance.sweep.model import AnyOrder, Asks, OneOf, Whole
from conformance.sweep.tape import Moment
from conformance.sweep.view import Conn
from fakebrokers.core.frames import Malformed, Role

SLACK_S = 0.005
AT_ONCE_S = 0.3
BUSY_S = 1.5  #: where the client is a process of its own, or several, on a machine that may have much to do
LOCAL = ("invalid", "internal", "protocol", "timeout")  #: ways to fail without the server


def asked_by_ops(case: Case) -> list[tuple[Done, Asks, list[Question]]]:
    """Ops that ask one question each, with the questions that fit and were asked meanwhile."""
    if "asked" not in case.shared:
        case.shared["asked"] = list(_questions_of(case))
    found: list[tuple[Done, Asks, list[Question]]] = case.shared["asked"]
    return found


def _questions_of(case: Case) -> Iterator[tuple[Done, Asks, list[Question]]]:
    questions = case.facts.questions  # in the order in which they were asked
    for done in case.ops:
        asks = case.model.ops.get(done.op)
        if asks is None or done.result is None:
            continue
        first = bisect_right(questions, done.begun, key=_when)
        last = len(questions) if done.ended is None else bisect_left(questions, done.ended, key=_when)
        yield (
            done,
            asks,
            [
                question
                for question in questions[first:last]
                if isinstance(question.frame, asks.kind) and asks.fits(done.args, question.frame)
            ],
        )


def _when(question: Question) -> Moment:
    return question.asked


def _come(case: Case, done: Done, questions: Sequence[Question]) -> list[Question]:
    """Those whose answer the client had, as far as one can tell, when the op ended."""
    ended = done.ended
    return [one for one in questions if one.answered and ended and case.may_precede(one.answered, ended)]


def _is_unread(case: Case, question: Question) -> bool:
    """Whether the client may have lost the answer with its connection."""
    return question.answered is not None and case.may_be_unread(question.conn, question.answered)


@invariant("ok-needs-answer")
def ok_needs_answer(case: Case) -> Iterator[Violation]:
    """An op that asks the broker works out only behind an answer that says yes."""
    for done, asks, questions in asked_by_ops(case):
        assert done.result is not None
        if asks.none is not None and done.result.ok and asks.none(done.result.value):
            continue
        accepted = [one.frame for one in _come(case, done, questions) if one.accepted]
        parts = asks.parts(done.args) if asks.parts is not None else [asks.kind]
        is_answered = all(any(isinstance(one, part) for one in accepted) for part in parts)
        if done.result.ok and not is_answered:
            text = f"{done.op} was ok without an answer that says so"
            was_refused = done.op in case.model.creating and bool(_come(case, done, questions))
            word = "takes_existing" if was_refused else "reads_odd" if case.has_unread(done) else ""
            yield May(word, text) if word else text, done.ended
    for done in case.done("subscribe") if case.model.subscribe_asks else ():
        if done.result is not None and done.result.ok and done.ended is not None:
            opened = [w for w in case.facts.windows if w.opened and done.begun < w.opened < done.ended]
            if not opened and case.facts.windows:
                yield May("lazy_subscribe", "subscribe was ok without an answer that says so"), done.ended
    unseen = case.model.unseen_connections or case.model.connects_late
    for done in () if unseen else case.done("connect"):
        if done.result is None or not done.result.ok or done.ended is None:
            continue
        if not any(conn.ready and case.may_precede(conn.ready, done.ended) for conn in case.conns.values()):
            text = "connect was ok before a handshake was done"
            yield May("reads_odd", text) if case.has_unread(done) else text, done.ended


@invariant("refused-needs-answer")
def refused_needs_answer(case: Case) -> Iterator[Violation]:
    """An op is called refused only behind an answer with this code, also to the connection made for it."""
    for done, asks, questions in asked_by_ops(case):
        assert done.result is not None
        if done.result.word == "refused":
            if asks.apt is not None and not all(
                asks.apt(done.args, one.answer) for one in _come(case, done, questions)
            ):
                continue  # what ends it came behind the answer
            codes = [one.code for one in _come(case, done, questions)]
            codes += [flow.code for flow in case.facts.flows if flow.question in questions]
            codes += _turned_away(case, done)
            codes += [] if questions else _refused_besides(case, done)
            if not questions and done.result.code in case.model.refuses_by_itself:
                continue
            if done.result.code not in codes:
                text = f"{done.op} was refused with {done.result.code}; what came was {codes}"
                yield May("reads_odd", text) if case.has_unread(done) else text, done.ended


def _refused_besides(case: Case, done: Done) -> list[Any]:
    """The codes with which other questions about the op's target were refused that were asked while it was
    open: it may need what they ask for."""
    return [
        one.code
        for one in case.facts.questions
        if one.asked > done.begun and one.accepted is False and case.model.is_opening(one.frame)
        if getattr(one.frame, "stream", None) == done.args.get("target")
        if one.answered and done.ended and case.may_precede(one.answered, done.ended)
    ]


def _turned_away(case: Case, done: Done) -> list[Any]:
    """The codes with which connections were refused that were made while the op was open."""
    refused = [conn.turned_away for conn in case.conns.values() if conn.accepted > done.begun]
    return [
        one[1] for one in refused if one is not None and done.ended and case.may_precede(one[0], done.ended)
    ]


@invariant("answer-value")
def answer_value(case: Case) -> Iterator[Violation]:
    """What an op returns is what the answer said."""
    for done, asks, questions in asked_by_ops(case):
        assert done.result is not None
        if not done.result.ok or asks.value is None:
            continue
        come = [one for one in _come(case, done, questions) if one.accepted]
        if asks.apt is not None and not all(asks.apt(done.args, one.answer) for one in come):
            continue
        come = [one for one in come if not _is_unread(case, one)]
        more = asks.also or (lambda args, answer: {})
        wanted = [{**asks.value(one.answer), **more(done.args, one.answer)} for one in come]
        got = done.result.value
        if wanted and not any(_agree(got, each) for each in wanted):
            yield f"{done.op} returned {dict(got)}, and the answer said {wanted}", done.ended


def _agree(got: Any, said: Any) -> bool:
    """Whether what an op returned agrees with an answer in all that it says."""
    if isinstance(said, OneOf):
        return any(_agree(got, each) for each in said)
    if isinstance(said, Whole) and isinstance(got, Mapping) and said.keys() != got.keys():
        return False
    if isinstance(said, Mapping):
        return isinstance(got, Mapping) and all(_agree(got[name], said[name]) for name in said if name in got)
    if isinstance(said, AnyOrder) and isinstance(got, list):
        return len(got) == len(said) and all(any(_agree(one, other) for one in got) for other in said)
    if isinstance(said, list):
        if all(isinstance(one, Mapping) and "name" in one for one in (*said, *(got if got else ()))):
            said, got = sorted(said, key=_name), sorted(got, key=_name)  # rows with names have no order
        pairs = list(zip(got, said, strict=False)) if isinstance(got, list) else []
        return isinstance(got, list) and len(got) == len(said) and all(_agree(*pair) for pair in pairs)
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in (got, said)):
        return bool(got == said)  # 1 and 1.0 are one number
    return str(got) == str(said)


def _name(row: Mapping[str, Any]) -> str:
    return str(row["name"])


@invariant("answer-counts")
def request_answer_counts(case: Case) -> Iterator[Violation]:
    """An intact answer before the deadline is the end of its op."""
    for done, asks, questions in asked_by_ops(case):
        assert done.result is not None
        if len(questions) != 1 or done.ended is None or done.result.word in ("cancelled", "hang"):
            continue
        [one] = questions
        if one.answered is None or not one.conn.serves(one.answered) or _is_unread(case, one):
            continue
        if asks.apt is not None and not asks.apt(done.args, one.answer):
            continue
        if any(done.begun < close.begun < one.answered for close in case.done("close", "abort")):
            continue
        if one.answered.t > done.begun.t + done.timeout_s - SLACK_S - case.slack_s or has_twin(case, done):
            continue
        if any(done.begun < end.begun < one.answered for end in case.done("close", "abort")):
            continue  # the application has called it off
        late_s = done.ended.t - one.answered.t
        words = ("ok",) if one.accepted else ("refused", "auth")
        if case.before(one.answered, done.ended) and done.result.word not in words:
            yield f"{done.op} ended {done.result.word}, and was answered", one.answered, done.ended
        elif late_s > (BUSY_S if case.slack_s else AT_ONCE_S):
            yield f"{done.op} went on for {late_s:.1f} s behind its answer", one.answered


def has_twin(case: Case, done: Done) -> bool:
    """Whether another op asked the same while this one was open: which question is whose cannot be told."""
    for other in case.done(done.op):
        if other is done:
            continue
        ended = other.ended
        meets = other.begun < (done.ended or other.begun) and (ended is None or ended > done.begun)
        if meets and other.args == done.args:
            return True
    return False


@invariant("loss-ends-requests")
def loss_ends_requests(case: Case) -> Iterator[Violation]:
    """The end of a connection ends at once what was asked on it, unless the answer can come over another."""
    if case.model.unseen_connections or case.model.answers_move:
        return
    for done, _, questions in asked_by_ops(case):
        if len(questions) != 1 or done.ended is None or has_twin(case, done):
            continue
        [one] = questions
        lost = one.conn.ended
        if lost is None or lost < one.asked or (one.answered is not None and one.answered < lost):
            continue
        if done.ended.t > lost.t + AT_ONCE_S + case.slack_s:
            text = f"{done.op} ended {done.ended.t - lost.t:.1f} s behind its connection"
            yield May("waits", text), lost, done.ended


@invariant("loss-ends-requests")
def leaving_ends_requests(case: Case) -> Iterator[Violation]:
    """Whoever was asked and leaves ends at once what the client has asked of him, streams too."""
    for done, _, questions in asked_by_ops(case):
        if len(questions) != 1 or done.ended is None or has_twin(case, done) or questions[0].to is None:
            continue
        [one] = questions
        left = [
            dropped.at
            for dropped in case.facts.dropped
            if dropped.target == one.to and dropped.at > one.asked
            if dropped.conn is one.conn or len(list(case.done("connect"))) == 1  # others may not know
            if dropped.conn.goodbye is None or dropped.at < dropped.conn.goodbye  # else nobody reads it
        ]
        flows = [flow for flow in case.facts.flows if flow.question is one and flow.direction == "out"]
        over = flows[0].whole if flows else one.answered
        if not left or (over is not None and over < left[0]):
            continue
        if done.ended.t > left[0].t + AT_ONCE_S + case.slack_s:
            yield (
                f"{done.op} went on for {done.ended.t - left[0].t:.1f} s behind {one.to}",
                left[0],
                done.ended,
            )


@invariant("loss-ends-requests")
def loss_ends_handshakes(case: Case) -> Iterator[Violation]:
    """What waits for its very first connection ends at once with that connection."""
    if not case.model.connects_late:
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
                f"{done.op} went on for {done.ended.t - lost.t:.1f} s behind its connection",
                lost,
                done.ended,
            )


@invariant("fails-fast")
def fails_fast(case: Case) -> Iterator[Violation]:
    """Without a connection, and with nobody who makes one, an op fails at once."""
    if case.reconnects or case.model.connects_late:
        return
    needy = {*case.model.ops, "publish", "publish_many", "subscribe"}
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
    """A question is given up before its deadline only if its connection is lost, or it was called off."""
    closes = [done.begun for done in case.done("close", "abort", "connect")]
    for done, asks, questions in asked_by_ops(case):
        result = done.result
        if result is None or done.ended is None or result.ok or not questions:
            continue
        if result.word in ("refused", "auth", "invalid", "cancelled", "hang", "crashed"):
            continue
        own_s = (done.args.get("timeout_ms") or math.inf) / 1000  # what the application has given it
        if done.ended.t >= done.begun.t + min(own_s, done.timeout_s) - SLACK_S - case.slack_s:
            continue
        if any(done.begun < close < done.ended for close in closes):
            continue
        if any(
            one.answer is not None and asks.apt and not asks.apt(done.args, one.answer) for one in questions
        ):
            continue
        if done.op in case.model.closing and has_twin(case, done):
            continue  # the other one has closed it
        if "silent" in case.notes:
            continue  # who has to answer is taken for dead
        if any(done.begun < dropped.at < done.ended for dropped in case.facts.dropped):
            continue  # whoever was to answer may be gone
        if any(case.model.is_silent(case, one, done.ended) for one in questions):
            continue
        is_odd = case.model.answers_in_order and any(_is_odd(one, done.ended) for one in questions)
        if is_odd or _has_lost_its_own(case, done):
            continue
        if all(_stood(case, one, done) for one in questions):
            yield f"{done.op} was given up ({result}), and nothing was lost", done.ended


def _has_lost_its_own(case: Case, done: Done) -> bool:
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
def no_connection_for_a_reason(case: Case) -> Iterator[Violation]:
    """An op says that there is no connection only where one was lost, or there is none yet."""
    if case.facts.dropped or case.facts.refused or case.model.answers_move or not case.is_truthful:
        return  # whoever was to answer may be gone, or is not where the client was told
    if "unreachable" in case.notes:
        return  # an op that needs a connection of its own gets none, while the others stand
    for done in case.ops:
        result = done.result
        if result is None or result.word != "connection" or done.ended is None or done.op == "connect":
            continue
        if any(done.begun < end.begun < done.ended for end in case.done("close", "abort")):
            continue
        standing = sum(conn.stands(done.begun) for conn in case.conns.values())
        if standing < case.notes.get("sessions", 1):
            continue  # whose connection it is that stands, nobody can tell
        if case.model.unseen_connections and _has_lost(case, done):
            continue  # what it had of its own may have been lost with them, before it was on the tape
        if sound(case, done.begun, done.ended):
            yield f"{done.op} failed: {result}, and all connections stand", done.begun, done.ended


def _has_lost(case: Case, done: Done) -> bool:
    """Whether the broker has ended a connection about when an op was open."""
    assert done.ended is not None
    since_s, until_s = done.begun.t - case.slack_s, done.ended.t + case.slack_s
    ends = [conn.ended for conn in case.conns.values() if conn.ended_by == "broker"]
    return any(end is not None and since_s <= end.t <= until_s for end in ends)


@invariant("fails-for-a-reason")
def protocol_errors_for_a_reason(case: Case) -> Iterator[Violation]:
    """An answer is called unreadable only where something has come that is, or that nobody has asked for."""
    if not case.model.answers_in_order or not case.is_truthful:
        return  # elsewhere it may be another answer, and what ends the connection is looked at by itself
    for done, asks, questions in asked_by_ops(case):
        if done.result is None or done.result.word != "protocol" or len(questions) != 1 or done.ended is None:
            continue
        conn, answer = questions[0].conn, questions[0].answer
        if answer is not None and asks.apt and not asks.apt(done.args, answer):
            continue
        came = [seen for seen in conn.of("out") if seen.at < done.ended]
        asked = [seen for seen in conn.of("in") if seen.at < done.ended]
        is_odd = conn.garbage is not None or any(isinstance(seen.frame, Malformed) for seen in came)
        if is_odd or len(came) > len(asked) or conn.ended is None or conn.ended_by == "broker":
            continue
        yield f"{done.op} ended {done.result}, and all that came can be read", questions[0].asked, done.ended


def sound(case: Case, begun: Moment, ended: Moment) -> bool:
    """Whether each connection that there was stands all the time, or was replaced before."""
    conns = [conn for conn in case.conns.values() if conn.accepted < ended]
    serving = [conn for conn in conns if conn.serves(begun) and conn.serves(ended)]
    serving = [conn for conn in serving if not _ends_with(case, conn, ended)]
    since = max((conn.ready for conn in serving if conn.ready is not None), default=None)
    gone = [conn for conn in conns if conn not in serving]
    if gone and not case.reconnects:
        return False
    if len(serving) < case.notes.get("sessions", 1):
        return False  # it may be another session's connection that stands
    return since is not None and all(conn.ended is not None and conn.ended < since for conn in gone)


def _ends_with(case: Case, conn: Conn, ended: Moment) -> bool:
    """Whether the broker sees the end of a connection so soon behind an op that the client was first."""
    return conn.ended is not None and ended < conn.ended and conn.ended.t < ended.t + case.slack_s


def _stood(case: Case, question: Question, done: Done) -> bool:
    """Whether a question's connection was sound until its op ended."""
    conn = question.conn
    marks = (conn.ended, conn.goodbye, conn.garbage, conn.parting, conn.deaf)
    return done.ended is None or not any(mark and case.may_precede(mark, done.ended) for mark in marks)


def _is_odd(question: Question, until: Moment) -> bool:
    """Whether something that cannot be read has come instead of an answer."""
    seen = question.conn.of("out")
    return any(isinstance(one.frame, Malformed) and question.asked < one.at < until for one in seen)


def _has_rival(case: Case, done: Done) -> bool:
    """Whether another session was there, or came, while this one connected: whose connection is whose
    cannot be told."""
    return any(
        other is not done
        and other.args.get("session") != done.args.get("session")
        and (done.ended is None or other.begun < done.ended)
        for other in case.done("connect")
    )


@invariant("loss-ends-requests")
def loss_ends_connect(case: Case) -> Iterator[Violation]:
    """A connect whose only connection is over, or was turned away, ends at once."""
    if "unreachable" in case.notes:
        return  # further attempts leave no trace
    for done in case.done("connect"):
        if _has_rival(case, done):
            continue
        if done.ended is None or len(done.args["endpoints"]) != 1 or done.result is None or done.result.ok:
            continue
        conns = [conn for conn in case.conns.values() if done.begun < conn.accepted < done.ended]
        if len(conns) != 1:
            continue
        turned = conns[0].turned_away[0] if conns[0].turned_away is not None else None
        over = min((mark for mark in (conns[0].lost(), turned) if mark is not None), default=None)
        if over is not None and done.ended.t > over.t + AT_ONCE_S + case.slack_s:
            text = f"connect went on for {done.ended.t - over.t:.1f} s behind its connection"
            yield May("reads_on" if over == conns[0].garbage else "waits", text), over, done.ended


@invariant("answer-counts")
def connect_answer_counts(case: Case) -> Iterator[Violation]:
    """A connect whose handshake was done in time, on a connection that stands, works."""
    for done in case.done("connect"):
        if _has_rival(case, done):
            continue
        if done.ended is None or done.result is None or done.result.ok or done.result.word == "cancelled":
            continue
        if any(done.begun < end.begun < done.ended for end in case.done("close", "abort")):
            continue
        deadline_s = done.begun.t + done.timeout_s - case.model.settles_s - SLACK_S - case.slack_s
        for conn in case.conns.values():
            if not done.begun < conn.accepted < done.ended or conn.ready is None or conn.ready > done.ended:
                continue
            if conn.ready.t < deadline_s and conn.lost() is None and conn.turned_away is None:
                yield f"connect ended {done.result.word}, and its handshake was done", conn.ready, done.ended


@invariant("tells-its-deadline")
def tells_its_deadline(case: Case) -> Iterator[Violation]:
    """A question that says how long the client waits says what the application has given it."""
    for done, _, questions in asked_by_ops(case):
        given_s = done.args.get("timeout_ms", 0) / 1000
        for one in questions if given_s and not has_twin(case, done) else ():
            told_s = case.model.deadline_of(one.frame)
            differs = told_s is not None and abs(told_s - given_s) > SLACK_S
            if differs:
                yield f"{done.op} has {given_s:g} s, and tells {told_s:g} s", one.asked


def _is_same_under_way(case: Case, asks: Asks, done: Done, other: Done) -> bool:
    """Whether another op asks for the same thing, if under another name, and may still be under way, or has
    opened it."""
    named = {*done.args, *other.args} - {"target", "sub"}
    is_open = _opens(asks) and other.result is not None and other.result.ok
    return (
        other is not done
        and other.begun < (done.ended or other.begun)
        and (other.ended is None or not case.before(other.ended, done.begun) or is_open)
        and all(done.args.get(name) == other.args.get(name) for name in named)
    )


def _opens(asks: Asks) -> bool:
    """Whether it asks for something that is there until it is closed: a question need not be asked twice."""
    kinds = asks.kind if isinstance(asks.kind, tuple) else (asks.kind,)
    return any(kind.spec.role_in("in") is Role.OPEN for kind in kinds)


@invariant("untouched-works")
def untouched_works(case: Case) -> Iterator[Violation]:
    """Where nothing is disturbed, the client sends what it is asked to send."""
    if case.hits or case.touched or case.spec.changes or case.spec.asides or "oversized" in case.notes:
        return
    if any(conn.lost() or conn.turned_away for conn in case.conns.values()):
        return
    for done, asks, questions in asked_by_ops(case):
        result = done.result
        if result is None or result.ok or questions or result.word not in LOCAL or done.phase == "close":
            continue
        if any(_is_same_under_way(case, asks, done, other) for other in case.done(done.op)):
            continue
        yield f"{done.op} failed, and nothing was asked: {result}", done.ended
    written = {one.body for one in case.facts.written}
    for told in case.told:
        is_late = told.done.phase in ("close", "closed") or None in written
        if told.word == "unknown" and told.body is not None and told.body not in written and not is_late:
            yield f"{told}, and it was never written whole", told.at
    for done in case.ops:
        if done.result is not None and done.result.word == "internal":
            yield f"{done.op} failed inside the client: {done.result}", done.ended
    for done in case.done("unsubscribe", "subscribe", "close"):
        if done.result is not None and done.result.word == "timeout" and "abandons" not in case.notes:
            yield f"{done.op} did not end in time: {done.result}", done.ended
