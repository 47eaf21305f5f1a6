"""What the client writes is legal."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from conformance.invariants.registry import Violation, invariant
from conformance.sweep.case import Case
from conformance.sweep.facts import IdUse, Question
from fakebrokers.core.frames import Malformed, kind_of

BUSY_S = 4.0  #: what an answer may take where the client is a process, on a machine that may have much to do
PARTING_S = 0.05  #: what is asked this long before a client says goodbye is answered first


@invariant("wire-legal")
def wire_legal(case: Case) -> Iterator[Violation]:
    """Every frame of the client can be read by the letter of the protocol."""
    for conn in case.conns.values():
        for seen in conn.of("in"):
            if conn.turned_away is not None and case.may_precede(conn.turned_away[0], seen.at):
                break  # what the client asks behind a refusal, a server that takes it for accepted misreads
            if isinstance(seen.frame, Malformed):
                yield seen.frame.problem, seen.at
    for at, what in case.facts.broken:
        yield what, at


@invariant("frame-max")
def frame_max(case: Case) -> Iterator[Violation]:
    """No frame of the client is larger than was agreed."""
    for conn in case.conns.values():
        limit = conn.agreed.frame_max
        if limit < case.model.least_limit or conn.ready is None:
            continue
        for seen in conn.of("in"):
            if seen.at > conn.ready and seen.size - case.model.size_field > limit:
                yield f"{kind_of(seen.frame)} of {seen.size} bytes, {limit} were agreed", seen.at


@invariant("id-reuse")
def id_reuse(case: Case) -> Iterator[Violation]:
    """The id of a question is not used for another one while it has no answer."""
    if "counts" in case.notes:
        return  # the base itself has set the counter
    open_until: dict[tuple[str, Hashable], tuple[object, object]] = {}
    for question in case.facts.questions:
        if question.key is None:
            continue
        key = question.conn.name, question.key
        former = open_until.get(key)
        if former is not None and (former[1] is None or former[1] > question.asked):  # type: ignore[operator]
            what = f"{kind_of(question.frame)} has id {question.key}"
            yield f"{what} of a {former[0]} that has no answer yet", question.asked
        open_until[key] = kind_of(question.frame), question.answered


@invariant("live-id")
def live_id(case: Case) -> Iterator[Violation]:
    """A number that is in use on a connection is not given to something else there."""
    last: dict[tuple[str, str, Hashable], IdUse] = {}
    for use in case.facts.ids:
        key = use.conn.name, use.space, use.number
        former = last.get(key)
        if former is not None and (former.freed is None or former.freed > use.taken):
            yield (
                f"{use.space} {use.number} for {use.what}, it is that of {former.what}",
                former.taken,
                use.taken,
            )
        last[key] = use


@invariant("answers-questions")
def answers_questions(case: Case) -> Iterator[Violation]:
    """Every question of the server is answered soon, with its own id, while the connection stands."""
    for question in case.facts.asked_back:
        conn = question.conn
        if question.answered is None and (conn.garbage is not None or conn.partial):
            continue
        ended = conn.ended
        latest_s = question.asked.t + PARTING_S + case.slack_s
        parted = conn.parting is not None and latest_s < conn.parting.t
        left_s = (case.ended_s if ended is None else ended.t) - question.asked.t
        due = left_s > case.model.answer_within_s + case.slack_s or parted
        due = due and conn.deaf is None
        due = due or _was_left(case, question)
        if question.answered is None and due and conn.goodbye in (None, question.asked):
            yield f"{kind_of(question.frame)} {question.key} got no answer", question.asked
        elif question.answered is not None and type(question.frame) in case.model.questions:
            after_s = question.answered.t - question.asked.t
            within_s = max(case.model.answer_within_s, BUSY_S * bool(case.slack_s)) + case.slack_s
            if after_s > within_s:
                text = f"{kind_of(question.frame)} {question.key} got its answer {after_s:.1f} s later"
                yield text, question.asked, question.answered
    known = {(q.conn.name, q.answered) for q in case.facts.asked_back if q.answer is not None}
    answers = set(case.model.questions.values()) - set(case.model.answers)
    for conn in case.conns.values():
        for seen in conn.of("in"):
            if type(seen.frame) in answers and (conn.name, seen.at) not in known:
                yield f"{kind_of(seen.frame)} answers nothing that was asked", seen.at


def _was_left(case: Case, question: Question) -> bool:
    """Whether the client has ended a connection, by nothing but a goodbye that wants an answer.

    Over sockets nobody can tell: a reset takes along what was written in front of it.
    """
    conn, ended = question.conn, question.conn.ended
    if case.slack_s:
        return False
    if ended is None or conn.ended_by != "client" or question.asked != conn.goodbye:
        return False
    if conn.parting is not None or conn.garbage is not None or conn.deaf is not None or conn.ready is None:
        return False
    return question.asked > conn.ready and not any(d.begun < ended for d in case.done("close", "abort"))


@invariant("uses-what-it-has")
def uses_what_it_has(case: Case) -> Iterator[Violation]:
    """The client says nothing about a producer or a subscription that it has not, or has ended itself."""
    for at, what in case.facts.misused:
        yield what, at


@invariant("answers-what-was-asked")
def answers_what_was_asked(case: Case) -> Iterator[Violation]:
    """The client answers a question of the server with what it has to say to it."""
    for at, what in case.facts.wrong:
        yield what, at
