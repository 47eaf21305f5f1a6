"""What the client refuses by itself, before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator

from conformance.rules.registry import Violation, invariant
from conformance.run.case import Case
from conformance.run.reported import bodies_in
from conformance.run.trace import Position

CHANGES_NOTHING = ("publish", "publish_many", "state", "stats")


@invariant("fails-for-a-reason")
def refuses_for_a_reason(case: Case) -> Iterator[Violation]:
    """A message is called impossible only if none like it was taken just before, with as much under way."""
    if not any(done.result is not None and done.result.word == "invalid" for done in case.done("publish")):
        return
    taken: dict[str, list[tuple[int, int]]] = {}
    ends: list[Position] = []
    begun = 0
    for done in case.ops:
        under_way = begun - sum(1 for end in ends if end < done.begun)
        begun += 1
        if done.ended is not None:
            ends.append(done.ended)
        if done.op not in CHANGES_NOTHING:
            taken.clear()  # from here on it may be impossible
        if done.op != "publish" or done.result is None or done.args.get("key") is not None:
            continue
        size = sum(map(len, bodies_in("publish", done.args)))
        like = json.dumps({**done.args, "body": None}, sort_keys=True)
        if done.result.word != "invalid":
            taken.setdefault(like, []).append((size, under_way))
        elif any(0 < size <= most and under_way <= others for most, others in taken.get(like, ())):
            text = f"{done.op} ended {done.result} with {under_way} ops under way"
            yield f"{text}, and one like it was taken with more", done.begun, done.ended
