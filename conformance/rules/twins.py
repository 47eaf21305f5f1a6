"""Equal questions at once: which answer belongs to which op cannot be known, but how many there are can."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from conformance.rules.registry import Violation, invariant
from conformance.rules.requests import asked_by_ops, came_in_time
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Question
from conformance.run.showing import shown

ENDED_BY_ITSELF = ("cancelled", "hang", "closed")


@invariant("answer-counts")
def equal_questions_are_answered(case: Case) -> Iterator[Violation]:
    """Ops that ask the same at once succeed if each of their questions was accepted in time."""
    for own, questions in _at_once(case):
        asked = f"{len(own)} ops asked the same at once"
        if not _are_accepted(case, own, questions):
            continue
        last = max(one.answered for one in questions if one.answered is not None)
        for done in own:
            assert done.result is not None and done.ended is not None
            if not done.result.ok and case.before(last, done.ended):
                yield f"{done.op} ended {done.result.word}; {asked}, and all were answered", last, done.ended


def _at_once(case: Case) -> Iterator[tuple[list[RunOp], list[Question]]]:
    """Ops of the same name and arguments of which each was begun before all before it had ended."""
    alike: dict[tuple[str, str], list[tuple[RunOp, list[Question]]]] = defaultdict(list)
    for done, _, questions in asked_by_ops(case):
        alike[done.op, shown(done.args, 10_000)].append((done, questions))
    for rows in alike.values():
        group: list[tuple[RunOp, list[Question]]] = []
        for done, questions in sorted(rows, key=lambda row: row[0].begun):
            if group and not any(one.ended is None or done.begun < one.ended for one, _ in group):
                yield from _several(group)
                group = []
            group.append((done, questions))
        yield from _several(group)


def _several(
    group: list[tuple[RunOp, list[Question]]],
) -> Iterator[tuple[list[RunOp], list[Question]]]:
    if len(group) > 1:
        found = {id(one): one for _, questions in group for one in questions}
        yield [done for done, _ in group], list(found.values())


def _are_accepted(case: Case, own: list[RunOp], questions: list[Question]) -> bool:
    """Whether each has asked once, and all answers came intact before any of them was over."""
    words = [done.result.word for done in own if done.result is not None and done.ended is not None]
    if len(questions) != len(own) or len(words) != len(own) or any(word in ENDED_BY_ITSELF for word in words):
        return False
    asks = case.traits.questions.ops[own[0].op]
    return all(
        one.accepted and one.answered is not None and came_in_time(case, done, asks, one, one.answered)
        for one in questions
        for done in own
    )
