"""Whether what an op returned is what an answer said, and where not; what may have come in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import UNSET

from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Question
from conformance.run.traits import AnyOrder, Asks, OneOf, Whole
from fakebrokers.core.frames import kind_of


def agree(got: Any, said: Any) -> bool:
    """Whether what an op returned agrees with an answer in all that it says."""
    if isinstance(said, OneOf):
        return any(agree(got, each) for each in said)
    if isinstance(said, Mapping):
        return isinstance(got, Mapping) and _members_agree(got, said)
    if isinstance(said, list):
        return isinstance(got, list) and len(got) == len(said) and _rows_agree(got, said)
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in (got, said)):
        return bool(got == said)  # 1 and 1.0 are one number
    return str(got) == str(said)


def _members_agree(got: Mapping[Any, Any], said: Mapping[Any, Any]) -> bool:
    if isinstance(said, Whole) and said.keys() != got.keys():
        return False
    return all(agree(got[name], said[name]) for name in said if name in got)


def _rows_agree(got: list[Any], said: list[Any]) -> bool:
    if isinstance(said, AnyOrder):
        return all(any(agree(one, other) for one in got) for other in said)
    if all(isinstance(one, Mapping) and "name" in one for one in (*said, *got)):
        said, got = sorted(said, key=_name), sorted(got, key=_name)  # rows with names have no order
    return all(agree(*pair) for pair in zip(got, said, strict=True))


def _name(row: Mapping[str, Any]) -> str:
    return str(row["name"])


def shared(got: Any, said: Any) -> int:
    """In how many members they agree: an op returned that of several answers with which it shares most."""
    if not (isinstance(got, Mapping) and isinstance(said, Mapping)):
        return 0
    return sum(agree(got[name], said[name]) for name in said if name in got)


def difference(got: Any, said: Any) -> tuple[str, Any, Any]:
    """Where two values differ first: the path to it, and what is there in each; UNSET where nothing is."""
    steps: list[tuple[str, Any, Any]] = []
    if isinstance(said, OneOf):
        said = max(said, key=partial(shared, got))
    if isinstance(got, Mapping) and isinstance(said, Mapping):
        names = [*said, *got] if isinstance(said, Whole) else [name for name in said if name in got]
        steps = [(str(name), got.get(name, UNSET), said.get(name, UNSET)) for name in names]
    elif isinstance(got, list) and type(said) is list and len(got) == len(said):
        steps = [(str(number), *pair) for number, pair in enumerate(zip(got, said, strict=True))]
    for step, one, other in steps:
        if not agree(one, other):
            path, one, other = difference(one, other)
            return f"{step}.{path}".rstrip("."), one, other
    return "", got, said


def of_another(case: Case, done: RunOp, asks: Asks) -> str:
    """That an op returned what an earlier question was answered, whose op had ended; "" if it did not."""
    assert done.result is not None and done.ended is not None
    ended = [other.ended for other in case.done(done.op) if other.ended is not None]
    for one in case.facts.questions if asks.value is not None else ():
        came = one.answered
        if not isinstance(one.frame, asks.kind) or came is None or not one.asked < done.begun:
            continue
        was_left = any(one.asked < end < came for end in ended)
        is_late = was_left and case.may_precede(came, done.ended)
        if is_late and agree(done.result.value, asks.value(one.answer)):  # type: ignore[misc]
            return "; it returned the answer to an earlier question, whose op had ended"
    return ""


def changed(case: Case, done: RunOp, asks: Asks, known: Iterable[Question]) -> str:
    """That a question of the op's kind was answered meanwhile that no op asks: it may be its own, changed.

    Args:
        known: The questions that ops ask.
    """
    assert done.ended is not None
    ids = {id(one) for one in known}
    for one in case.facts.questions:
        if not isinstance(one.frame, asks.kind) or id(one) in ids or not one.asked > done.begun:
            continue
        if one.answered is not None and case.may_precede(one.answered, done.ended):
            return f"; a {kind_of(one.frame)} that no op asks for was answered meanwhile"
    return ""
