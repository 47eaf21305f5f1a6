"""What is done again and again, in rounds that are all the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from conformance.rules.registry import Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.showing import shown

ENDS = 2  #: rounds at the beginning and at the end that are compared
ROUNDS = 2 * ENDS


@invariant("no-growth")
def works_in_every_round(case: Case) -> Iterator[Violation]:
    """What works in the first rounds works in the last ones, too."""
    if case.hits:
        return
    asked: dict[str, list[RunOp]] = defaultdict(list)
    for done in case.ops:
        if done.phase == "rounds" and done.result is not None:
            asked[done.op].append(done)
    for op, rounds in asked.items():
        words = [done.result.word for done in rounds if done.result is not None]
        first, last = words[:ENDS], words[-ENDS:]
        if len(words) >= ROUNDS and set(first) == {"ok"} and "ok" not in last:
            yield (
                f"{op} works in the first rounds, and not in the last ones: {shown(words)}",
                rounds[-1].ended,
            )
