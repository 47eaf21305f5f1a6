"""The smallest spec that still fails: fewer faults, nearer to the front, simpler parameters, a shorter base.

Delta debugging over a handful of faults: each candidate is run, and taken if the same invariant is violated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from conformance.run.specs import Bend, Spec, to_json
from fakebrokers.faults.search import Search, smallest_in_time, tries

#: Whether a spec still fails the same way.
Fails = Callable[[Spec], bool]

EVALUATIONS_MAX = 300
#: Acts from the plainest to the strangest: the plainest one that fails the same way says the most.
PLAIN_ACTS = ("rst", "fin", "lost", "late")


class Shrinking(Search[Spec]):
    """A search among specs.

    Args:
        fails: Runs a spec; see `Fails`.
        most: How many runs it may cost.
    """

    def __init__(self, fails: Fails, most: int = EVALUATIONS_MAX) -> None:
        super().__init__(fails, most, candidates, to_json)


async def smallest_of(
    spec: Spec, fails: Callable[[Spec], Awaitable[bool]], most: int, until_s: float
) -> Spec:
    """The same where runs take real time; see `search.smallest_in_time`."""
    return await smallest_in_time(tries(spec, candidates, to_json, most), spec, fails, until_s)


def candidates(spec: Spec) -> Iterator[Spec]:
    """Simpler specs, the greatest simplification first."""
    bends, changes, asides = spec.bends, spec.changes, spec.asides
    if bends or changes or asides:
        yield msgspec.structs.replace(spec, bends=(), changes=(), asides=())
    for number in range(len(bends)):
        yield msgspec.structs.replace(spec, bends=bends[:number] + bends[number + 1 :])
    for number in range(len(changes)):
        yield msgspec.structs.replace(spec, changes=changes[:number] + changes[number + 1 :])
    for number, aside in enumerate(asides):
        rest = asides[:number], asides[number + 1 :]
        yield msgspec.structs.replace(spec, asides=(*rest[0], *rest[1]))
        for turns in dict.fromkeys((0, aside.turns // 2)):
            if turns < aside.turns:
                sooner = msgspec.structs.replace(aside, turns=turns)
                yield msgspec.structs.replace(spec, asides=(*rest[0], sooner, *rest[1]))
    for number in reversed(range(len(bends))):
        for simpler in simpler_bends(bends[number]):
            yield msgspec.structs.replace(spec, bends=(*bends[:number], simpler, *bends[number + 1 :]))
    if spec.ops is None or spec.ops > 1:
        yield from (msgspec.structs.replace(spec, ops=ops) for ops in _fewer(spec.ops))


def simpler_bends(bend: Bend) -> Iterator[Bend]:
    """The same fault in a plainer form, or further to the front."""
    if bend.act in PLAIN_ACTS:
        yield from (_as(bend, act) for act in PLAIN_ACTS[: PLAIN_ACTS.index(bend.act)])
    else:
        yield from (_as(bend, act) for act in PLAIN_ACTS)
    position = bend.nth
    for nearer in sorted({1, position // 2, position - 1}):
        if 0 < nearer < position:
            yield Bend(bend.connection, bend.direction, nearer, bend.act, bend.param)
    for param in simpler_params(bend.param):
        yield Bend(bend.connection, bend.direction, bend.nth, bend.act, param)


def simpler_params(param: Any) -> Iterator[Any]:
    """Plainer parameters: smaller numbers, shorter texts."""
    if isinstance(param, bool) or param is None:
        return
    if isinstance(param, int) and param > 1:
        yield from dict.fromkeys((1, param // 2, param - 1))
    elif isinstance(param, str) and len(param) > 8:
        yield param[: len(param) // 2]
    elif isinstance(param, list) and param and not isinstance(param[-1], list):
        yield from ([*param[:-1], simpler] for simpler in simpler_params(param[-1]))


def _as(bend: Bend, act: str) -> Bend:
    return Bend(bend.connection, bend.direction, bend.nth, act)


def _fewer(ops: int | None) -> Iterator[int]:
    """Shorter bases: how many of its ops are begun before it goes on to its end."""
    if ops is None:
        yield from (2, 4, 8, 16)
    else:
        yield from dict.fromkeys(number for number in (1, ops // 2, ops - 1) if 0 < number < ops)
