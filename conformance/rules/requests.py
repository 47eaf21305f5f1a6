"""Requests end as they were answered, and end with their connection."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from conformance.rules.answers import agree, changed, difference, of_another, shared
from conformance.rules.closing import meanwhile
from conformance.rules.registry import May, Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Question
from conformance.run.showing import shown
from conformance.run.trace import Position
from conformance.run.traits import Asks
from conformance.run.view import Conn
from fakebrokers.core.frames import Role

SLACK_S = 0.005
AT_ONCE_S = 0.3
BUSY_S = 1.5  #: where the client is a process of its own, or several, on a machine that may have much to do
LOCAL = ("invalid", "internal", "protocol", "timeout")  #: ways to fail without the server


def asked_by_ops(case: Case) -> list[tuple[RunOp, Asks, list[Question]]]:
    """Ops that ask one question each, with the questions that fit and were asked meanwhile."""
    if "asked" not in case.shared:
        case.shared["asked"] = list(_questions_of(case))
    found: list[tuple[RunOp, Asks, list[Question]]] = case.shared["asked"]
    return found


def _questions_of(case: Case) -> Iterator[tuple[RunOp, Asks, list[Question]]]:
    questions = case.facts.questions  # in the order in which they were asked
    for done in case.ops:
        asks = case.traits.questions.ops.get(done.op)
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


def _when(question: Question) -> Position:
    return question.asked


def _come(case: Case, done: RunOp, questions: Sequence[Question]) -> list[Question]:
    """Those whose answer the client had, as far as one can tell, when the op ended."""
    ended = done.ended
    return [one for one in questions if one.answered and ended and case.may_precede(one.answered, ended)]


def _is_unread(case: Case, question: Question) -> bool:
    """Whether the client may have lost the answer with its connection."""
    return question.answered is not None and case.may_be_unread(question.conn, question.answered)


@invariant("ok-needs-answer")
def ok_needs_answer(case: Case) -> Iterator[Violation]:
    """An op that asks the broker succeeds only after an answer that accepts it.

    Why:
        The application goes on as if a stream were created, a queue open or a node reachable, and fails
        later, elsewhere.

    Rests on:
        RabbitMQ Stream: the response code 1 (docs/protocols/rabbitmq-stream.md, 4).
        BlazingMQ: openQueueResponse and its likes; a status is a failure (docs/protocols/blazingmq.md,
            6.5).
        Narconi: 2xx, or the 101 of an upgrade (docs/protocols/narconi.md, "Responses").
        PZQ: the monitor's reply (docs/protocols/pzq.md, "Monitor").
        Moleculer: a RESPONSE with success (docs/protocols/moleculer.md, 4.6).
        elsewhere: common sense: what has no answer is not done.

    Example:
        rmqs.create was ok without an answer that accepts it.
    """
    for done, asks, questions in asked_by_ops(case):
        assert done.result is not None
        if done.result.ok and not _is_accepted(case, done, asks, questions):
            text = f"{done.op} was ok without an answer that accepts it{_besides(case, done, asks)}"
            was_refused = done.op in case.traits.questions.creating and bool(_come(case, done, questions))
            word = "takes_existing" if was_refused else "reads_odd" if case.has_unread(done) else ""
            yield May(word, text) if word else text, done.ended
    if case.traits.questions.subscribe_asks and case.facts.windows:
        yield from _subscribed_without_answer(case)
    if not (case.traits.connecting.unseen_connections or case.traits.connecting.connects_late):
        yield from _connected_without_handshake(case)


def _besides(case: Case, done: RunOp, asks: Asks) -> str:
    """What came in place of an answer, in words that follow a sentence; "" if nothing did."""
    known = [question for _, _, questions in asked_by_ops(case) for question in questions]
    return of_another(case, done, asks) or changed(case, done, asks, known)


def _is_accepted(case: Case, done: RunOp, asks: Asks, questions: Sequence[Question]) -> bool:
    """Whether all that an op asks for was answered with yes, or it returned that there is nothing."""
    assert done.result is not None
    if asks.none is not None and asks.none(done.result.value):
        return True
    accepted = [one.frame for one in _come(case, done, questions) if one.accepted]
    parts = asks.parts(done.args) if asks.parts is not None else [asks.kind]
    return all(any(isinstance(one, part) for one in accepted) for part in parts)


def _succeeded(case: Case, op: str) -> Iterator[tuple[RunOp, Position]]:
    """The ops of that name that were ok, and when they ended."""
    for done in case.done(op):
        if done.result is not None and done.result.ok and done.ended is not None:
            yield done, done.ended


def _subscribed_without_answer(case: Case) -> Iterator[Violation]:
    for done, ended in _succeeded(case, "subscribe"):
        if not any(window.opened and done.begun < window.opened < ended for window in case.facts.windows):
            yield May("lazy_subscribe", "subscribe was ok without an answer that accepts it"), ended


def _connected_without_handshake(case: Case) -> Iterator[Violation]:
    for done, ended in _succeeded(case, "connect"):
        if not any(conn.ready and case.may_precede(conn.ready, ended) for conn in case.conns.values()):
            text = "connect was ok before a handshake was done"
            word = (
                "reads_odd" if case.has_unread(done) else "pipelines" if _looks_at_nothing(case, done) else ""
            )
            yield May(word, text) if word else text, ended


def _looks_at_nothing(case: Case, done: RunOp) -> bool:
    """Whether a connect ended at once, before the server had seen its client: it goes on after the op."""
    ended = done.ended
    assert ended is not None
    came = any(done.begun < conn.accepted < ended for conn in case.conns.values())
    return not came and ended.t - done.begun.t < AT_ONCE_S


@invariant("refused-needs-answer")
def refused_needs_answer(case: Case) -> Iterator[Violation]:
    """An op is reported as refused only after an answer with this code, also to the connection made for it.

    Why:
        The application reacts to a cause that is not there: it asks for rights, or creates what exists.

    Rests on:
        RabbitMQ Stream: the response codes (docs/protocols/rabbitmq-stream.md, 4).
        BlazingMQ: category and code of a status (docs/protocols/blazingmq.md, 9).
        Narconi: the status of the response (docs/protocols/narconi.md, "Responses").
        Moleculer: the code of the error object (docs/protocols/moleculer.md, 4.7).
        elsewhere: common sense: a refusal is an answer, a failure without one is something else.

    Example:
        rmqs.query_offset was reported as refused with code 2; the answers that came have the codes 19.
    """
    for done, asks, questions in asked_by_ops(case):
        assert done.result is not None
        if done.result.word == "refused":
            if asks.apt is not None and not all(
                asks.apt(done.args, one.answer) for one in _come(case, done, questions)
            ):
                continue  # what ends it came after the answer
            codes = [one.code for one in _come(case, done, questions)]
            codes += [flow.code for flow in case.facts.flows if flow.question in questions]
            codes += _turned_away(case, done)
            codes += [] if questions else _refused_besides(case, done)
            if not questions and done.result.code in case.traits.questions.refuses_by_itself:
                continue
            if done.result.code is None and codes:
                continue  # a library that keeps the code to itself is asked for it where it matters
            if done.result.code not in codes:
                came = _came(codes) + "".join(
                    _content(case, asks, one) for one in _come(case, done, questions)
                )
                text = f"{done.op} was reported as {_refused(done.result.code)}; {came}"
                yield May("reads_odd", text) if case.has_unread(done) else text, done.ended


def _refused(code: Any) -> str:
    return "refused without a code" if code is None else f"refused with code {shown(code)}"


def _came(codes: list[Any]) -> str:
    with_codes = ", ".join(shown(code) for code in codes)
    return f"the answers that came have the codes {with_codes}" if codes else "no answer had come"


def _content(case: Case, asks: Asks, question: Question) -> str:
    """What an answer has that its op has to return, for people; "" where there is nothing of the kind."""
    if asks.value is None or not question.accepted or _is_unread(case, question):
        return ""
    return f", with {shown(asks.value(question.answer))}"


def _refused_besides(case: Case, done: RunOp) -> list[Any]:
    """The codes with which other questions were refused that were asked while the op was open: about its
    target, as it may need what they ask for, or sent to an address where nothing is."""
    traits = case.traits.questions
    return [
        one.code
        for one in case.facts.questions
        if one.asked > done.begun and one.accepted is False
        if traits.is_astray(one.frame)
        or (traits.is_opening(one.frame) and traits.target_of(one.frame) == done.args.get("target"))
        if one.answered and done.ended and case.may_precede(one.answered, done.ended)
    ]


def _turned_away(case: Case, done: RunOp) -> list[Any]:
    """The codes with which connections were refused that were made while the op was open."""
    refused = [conn.turned_away for conn in case.conns.values() if conn.accepted > done.begun]
    return [
        one[1] for one in refused if one is not None and done.ended and case.may_precede(one[0], done.ended)
    ]


@invariant("refused-needs-answer")
def refused_in_the_same_words(case: Case) -> Iterator[Violation]:
    """A refusal is reported with the message and the type that came with it."""
    for done, asks, questions in asked_by_ops(case):
        assert done.result is not None
        error, come = done.result.error, _come(case, done, questions)
        if asks.said is None or error is None or done.result.word != "refused" or len(come) != 1:
            continue
        text, type_ = asks.said(come[0].answer).get("text", ""), asks.said(come[0].answer).get("type")
        if text not in error.text:
            yield f"{done.op} was refused with the message {shown(error.text)}, not {shown(text)}", done.ended
        elif type_ is not None and error.type not in (None, type_):
            yield f"{done.op} was refused with the type {shown(error.type)}, not {shown(type_)}", done.ended


@invariant("refused-needs-answer")
def unauthorized_needs_answer(case: Case) -> Iterator[Violation]:
    """An op is reported as one of a user who is not let in only after an answer with such a code."""
    known = case.traits.questions.unauthorized
    for done, _, questions in asked_by_ops(case) if known else ():
        assert done.result is not None
        if done.result.word != "auth":
            continue
        codes = [one.code for one in _come(case, done, questions)] + _turned_away(case, done)
        if done.result.code not in known or done.result.code not in codes:
            code = "" if done.result.code is None else f" (code {shown(done.result.code)})"
            text = f"{done.op} was reported as one of a user who is not let in{code}; {_came(codes)}"
            yield May("reads_odd", text) if case.has_unread(done) else text, done.ended


@invariant("answer-value")
def answer_value(case: Case) -> Iterator[Violation]:
    """What an op returns is what the answer contains.

    Why:
        The application computes with wrong offsets, counts or data.

    Rests on:
        RabbitMQ Stream: the bodies of responses (docs/protocols/rabbitmq-stream.md, 3).
        PZQ: the lines of the monitor's reply (docs/protocols/pzq.md, "Monitor").
        Moleculer: data and meta of RESPONSE (docs/protocols/moleculer.md, 4.6).
        elsewhere: common sense: numbers above 2^53, empty and missing values are kept as they are.

    Example:
        rmqs.query_offset returned offset 9007199254740992, the answer has 9007199254740993.
    """
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
        if wanted and not any(agree(got, each) for each in wanted):
            path, one, other = difference(got, max(wanted, key=partial(shared, got)))
            text = f"{done.op} returned {path} {shown(one)}".replace("  ", " ")
            yield f"{text}, the answer has {shown(other)}{of_another(case, done, asks)}", done.ended


@invariant("answer-counts")
def request_answer_counts(case: Case) -> Iterator[Violation]:
    """An intact answer before the deadline ends its op, at once and with its content.

    Why:
        The application sees a failure where the broker has done what was asked, and does it again.

    Rests on:
        RabbitMQ Stream: correlation ids tie answers to requests; PublishConfirm and PublishError to ids
            (docs/protocols/rabbitmq-stream.md, 2, 6).
        BlazingMQ: rId for requests, correlation id or GUID for messages (docs/protocols/blazingmq.md, 4,
            6.5).
        Narconi: responses and confirms come in order (docs/protocols/narconi.md, "publish").
        PZQ: the reply has the message's id (docs/protocols/pzq.md, "Producer").
        Moleculer: RESPONSE has the id of its REQUEST (docs/protocols/moleculer.md, 4.6).
        elsewhere: common sense: an answer that has come is the outcome.

    Example:
        rmqs.create ended timeout, and had been answered.
    """
    for done, asks, questions in asked_by_ops(case):
        assert done.result is not None
        if len(questions) != 1 or done.ended is None or done.result.word in ("cancelled", "hang"):
            continue
        [one] = questions
        if one.answered is None or not _ends_its_op(case, done, asks, one, one.answered):
            continue
        late_s = done.ended.t - one.answered.t
        words = ("ok",) if one.accepted else ("refused", "auth")
        if case.before(one.answered, done.ended) and done.result.word not in words:
            text = f"{done.op} ended {done.result.word}, and had been answered{_content(case, asks, one)}"
            yield text, one.answered, done.ended
        elif late_s > (BUSY_S if case.slack_s else AT_ONCE_S):
            yield f"{done.op} went on for {late_s:.1f} s after its answer", one.answered


def _ends_its_op(case: Case, done: RunOp, asks: Asks, one: Question, answered: Position) -> bool:
    """Whether an answer came intact, in time, and for this op alone, before the application closed."""
    return came_in_time(case, done, asks, one, answered) and not has_twin(case, done)


def came_in_time(case: Case, done: RunOp, asks: Asks, one: Question, answered: Position) -> bool:
    """Whether an answer came intact, while an op waited for it, before the application closed."""
    if not one.conn.serves(answered) or _is_unread(case, one):
        return False
    if asks.apt is not None and not asks.apt(done.args, one.answer):
        return False
    if any(done.begun < close.begun < answered for close in case.done("close", "abort")):
        return False
    return answered.t <= done.begun.t + done.timeout_s - SLACK_S - case.slack_s


def has_twin(case: Case, done: RunOp) -> bool:
    """Whether another op asked the same while this one was open: which question is whose cannot be known."""
    for other in case.done(done.op):
        if other is done:
            continue
        ended = other.ended
        meets = other.begun < (done.ended or other.begun) and (ended is None or ended > done.begun)
        if meets and other.args == done.args:
            return True
    return False


def has_rival(case: Case, done: RunOp) -> bool:
    """Whether another session was there, or came, while this one connected: whose connection is whose
    cannot be known."""
    return any(
        other is not done
        and other.args.get("session") != done.args.get("session")
        and (done.ended is None or other.begun < done.ended)
        for other in case.done("connect")
    )


@invariant("answer-counts")
def connect_answer_counts(case: Case) -> Iterator[Violation]:
    """A connect whose handshake was done in time, on a connection that stays open, succeeds."""
    for done in case.done("connect"):
        if has_rival(case, done):
            continue
        if done.ended is None or done.result is None or done.result.ok or done.result.word == "cancelled":
            continue
        if any(done.begun < end.begun < done.ended for end in case.done("close", "abort")):
            continue
        deadline_s = done.begun.t + done.timeout_s - case.traits.connecting.settles_s - SLACK_S - case.slack_s
        for conn in case.conns.values():
            if not done.begun < conn.accepted < done.ended or conn.ready is None or conn.ready > done.ended:
                continue
            if conn.ready.t < deadline_s and conn.lost() is None and conn.turned_away is None:
                yield f"connect ended {done.result.word}, and its handshake was done", conn.ready, done.ended


@invariant("tells-its-deadline", level="SHOULD")
def tells_its_deadline(case: Case) -> Iterator[Violation]:
    """A request that contains how long the client waits contains what the application has given it.

    Why:
        The other side works on for a caller that is gone, or gives up although the caller waits.

    Rests on:
        Moleculer: `timeout` of REQUEST, in milliseconds (docs/protocols/moleculer.md, 4.5).

    Example:
        mol.call has 2 s, its request 5 s.

    Level:
        SHOULD: the caller's own deadline holds all the same; it is a service to the one that is asked.

    Judges:
        moleculer
    """
    for done, _, questions in asked_by_ops(case):
        given_ms = done.args.get("timeout_ms")
        if given_ms is None or has_twin(case, done):
            continue
        for one in questions:
            reported_s = case.traits.questions.deadline_of(one.frame)
            differs = reported_s is not None and abs(reported_s - given_ms / 1000) > SLACK_S
            if differs:
                has = f"{given_ms / 1000:g} s" if given_ms else "no time-out"
                yield f"{done.op} has {has}, its request {reported_s:g} s", one.asked


def _is_same_under_way(case: Case, asks: Asks, done: RunOp, other: RunOp) -> bool:
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
    """Where nothing is disturbed, the client sends what it is asked to send.

    Why:
        The ordinary case fails.

    Rests on:
        common sense: no fault acted in this run, so nothing but the client can be the reason.

    Example:
        publish failed, and nothing was sent: invalid (an empty body).
    """
    if not was_left_alone(case):
        return
    yield from _forgotten(case)
    if not keeps_connections(case):
        return
    yield from _not_sent(case)
    yield from _not_written(case)
    for done in case.ops:
        if done.result is not None and done.result.word == "internal":
            yield f"{done.op} failed inside the client: {done.result}", done.ended
    waits = case.traits.delivery.last_words is not None  # a drain waits for the application, too
    for done in () if case.notes.abandons else case.done("unsubscribe", "subscribe", "close"):
        if (waits and done.args.get("drain")) or (case.notes.silent and not _waited_for_another(case, done)):
            continue
        if done.result is not None and done.result.word == "timeout":
            yield f"{done.op} did not end in time{meanwhile(case, done)}: {done.result}", done.ended


def _waited_for_another(case: Case, done: RunOp) -> bool:
    """Whether a close used up its time while another end was under way, which may have got no answer."""
    took_s = 0.0 if done.ended is None else done.ended.t - done.begun.t
    return done.op == "close" and took_s >= done.timeout_s - case.slack_s and bool(meanwhile(case, done))


def is_untouched(case: Case) -> bool:
    """Whether nothing was done to a run, and the broker could always be reached."""
    spec, notes = case.spec, case.notes
    disturbed = case.hits or case.touched or spec.changes or spec.concurrent or notes.oversized
    return not (disturbed or notes.unreachable or notes.partly_unreachable)


def keeps_connections(case: Case) -> bool:
    """Whether nothing is disturbed in a run, and no connection was lost."""
    return was_left_alone(case) and not any(conn.lost() for conn in case.conns.values())


def was_left_alone(case: Case) -> bool:
    """Whether nothing is disturbed in a run; a connection may have ended with its session."""
    return is_untouched(case) and not any(_was_lost(conn) or conn.turned_away for conn in case.conns.values())


def _was_lost(conn: Conn) -> bool:
    """Whether a connection ended before the client had sent that it would."""
    lost = conn.lost()
    return lost is not None and (conn.client_closing is None or lost < conn.client_closing)


def _not_sent(case: Case) -> Iterator[Violation]:
    """Ops that failed by themselves, and asked nothing."""
    for done, asks, questions in asked_by_ops(case):
        result = done.result
        if result is None or result.ok or questions or result.word not in LOCAL or done.phase == "close":
            continue
        if not any(_is_same_under_way(case, asks, done, other) for other in case.done(done.op)):
            yield f"{done.op} failed, and nothing was sent: {result}", done.ended


def _forgotten(case: Case) -> Iterator[Violation]:
    """Messages that ran out of time and were never written, while no other one waited for its outcome; all
    that was asked had its answer."""
    written = {one.body for one in case.facts.written}
    is_odd = None in written or any(one.answer is None for one in case.facts.questions)
    for reported in () if is_odd else case.reported:
        result, begun = reported.done.result, reported.done.begun
        if result is None or result.word != "timeout" or reported.body is None or reported.body in written:
            continue
        others = [other for other in case.reported if other.done is not reported.done]
        if all(other.done.begun > begun or (other.at and other.at < begun) for other in others):
            yield f"{reported}, and it was never written", reported.at


def _not_written(case: Case) -> Iterator[Violation]:
    """Messages of unknown outcome that were never written, where all that was written could be read; one that
    the application has given up need not be."""
    written = {one.body for one in case.facts.written}
    for reported in () if None in written else case.reported:
        result, is_late = reported.done.result, reported.done.phase in ("close", "closed")
        if (
            reported.word == "unknown"
            and reported.body is not None
            and reported.body not in written
            and not (is_late or (result is not None and result.word == "cancelled"))
        ):
            yield f"{reported}, and it was never written whole", reported.at
