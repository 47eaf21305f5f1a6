"""What is called undone for sure has not been said to the broker, or was refused by it."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.rules.registry import May, Violation, invariant
from conformance.rules.requests import asked_by_ops, has_twin
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.showing import shown

BY_LOSS = ("connection", "timeout", "closed")  #: ways to fail that no answer of the broker decides


def _is_sure(done: RunOp) -> bool:
    """Whether an op was called undone for sure, without an answer."""
    result = done.result
    if result is None or result.ok or result.error is None:
        return False
    return bool(result.error.definite) and result.word in BY_LOSS


@invariant("definite-for-a-reason")
def definite_for_a_reason(case: Case) -> Iterator[Violation]:
    """What was asked and has no answer may have had its effect: it is not reported as certainly undone.

    Why:
        An application that believes it repeats the request, and has the effect twice.

    Rests on:
        all: an answer that was lost leaves open what the server did; only a refusal is certain
            (docs/protocols/narconi.md, "Responses").

    Example:
        narc.post was reported as certainly undone (connection), and had been written.
    """
    for done, _, questions in asked_by_ops(case):
        if not _is_sure(done) or done.ended is None or not questions or has_twin(case, done):
            continue
        if all(one.answered is None or one.answered > done.ended for one in questions):
            text = f"{done.op} was reported as certainly undone ({done.result}), and had been written"
            yield text, questions[0].asked, done.ended


@invariant("definite-for-a-reason")
def messages_are_undone_for_a_reason(case: Case) -> Iterator[Violation]:
    """A message that was written and has no answer may be stored: it is not reported as certainly refused."""
    refused = {one.place for one in case.facts.settled if not one.stored}
    for reported in case.reported:
        if (
            reported.word != "nacked"
            or reported.body is None
            or reported.at is None
            or not _is_sure(reported.done)
        ):
            continue
        if sum(1 for other in case.reported if other.body == reported.body) > 1:
            continue
        begun = reported.done.begun
        written = [
            one for one in case.facts.written
            if one.body == reported.body and begun < one.at < reported.at and one.place not in refused
        ]  # fmt: skip
        if written:
            yield f"{reported}, and it had been written", written[0].at, reported.at


@invariant("refused-needs-answer")
def ends_are_refused_by_an_answer(case: Case) -> Iterator[Violation]:
    """The end of a subscription or a producer is reported as refused only after a refusal with its code."""
    for done in case.done("unsubscribe", *case.traits.settlement.dropping):
        result, ended = done.result, done.ended
        if result is None or ended is None or result.word != "refused" or result.code is None:
            continue
        codes = [
            one.code
            for one in case.facts.questions
            if one.accepted is False and one.answered and one.answered > done.begun
            if case.may_precede(one.answered, ended)
        ]
        if result.code not in codes:
            text = f"{done.op} was reported as refused with code {shown(result.code)}; no such answer came"
            yield May("reads_odd", text) if case.has_unread(done) else text, ended
