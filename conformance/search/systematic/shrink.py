"""The smallest spec that still fails: fewer faults, nearer to the front, simpler parameters, a shorter base.

Delta debugging over a handful of faults: each candidate is run, and taken if the same invariant is violated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from conformance.run.specs import Injection, Spec, to_json
from conformance.search.shrink import Simpler

EVALUATIONS_MAX = 300
#: Acts from the plainest to the strangest: the plainest one that fails the same way says the most.
PLAIN_ACTS = ("rst", "fin", "lost", "late")


def candidates(spec: Spec) -> Iterator[Spec]:
    """Simpler specs, the greatest simplification first."""
    injections, changes, concurrent = spec.injections, spec.changes, spec.concurrent
    if injections or changes or concurrent:
        yield msgspec.structs.replace(spec, injections=(), changes=(), concurrent=())
    for number in range(len(injections)):
        yield msgspec.structs.replace(spec, injections=injections[:number] + injections[number + 1 :])
    for number in range(len(changes)):
        yield msgspec.structs.replace(spec, changes=changes[:number] + changes[number + 1 :])
    for number, action in enumerate(concurrent):
        rest = concurrent[:number], concurrent[number + 1 :]
        yield msgspec.structs.replace(spec, concurrent=(*rest[0], *rest[1]))
        for turns in dict.fromkeys((0, action.turns // 2)):
            if turns < action.turns:
                sooner = msgspec.structs.replace(action, turns=turns)
                yield msgspec.structs.replace(spec, concurrent=(*rest[0], sooner, *rest[1]))
    for number in reversed(range(len(injections))):
        for simpler in simpler_injections(injections[number]):
            yield msgspec.structs.replace(
                spec, injections=(*injections[:number], simpler, *injections[number + 1 :])
            )
    if spec.ops is None or spec.ops > 1:
        yield from (msgspec.structs.replace(spec, ops=ops) for ops in _fewer(spec.ops))


def simpler_injections(injection: Injection) -> Iterator[Injection]:
    """The same fault in a plainer form, or further to the front."""
    if injection.act in PLAIN_ACTS:
        yield from (_as(injection, act) for act in PLAIN_ACTS[: PLAIN_ACTS.index(injection.act)])
    else:
        yield from (_as(injection, act) for act in PLAIN_ACTS)
    position = injection.nth
    for nearer in sorted({1, position // 2, position - 1}):
        if 0 < nearer < position:
            yield Injection(injection.connection, injection.direction, nearer, injection.act, injection.param)
    for param in simpler_params(injection.param):
        yield Injection(injection.connection, injection.direction, injection.nth, injection.act, param)


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


def _as(injection: Injection, act: str) -> Injection:
    return Injection(injection.connection, injection.direction, injection.nth, act)


def _fewer(ops: int | None) -> Iterator[int]:
    """Shorter bases: how many of its ops are begun before it goes on to its end."""
    if ops is None:
        yield from (2, 4, 8, 16)
    else:
        yield from dict.fromkeys(number for number in (1, ops // 2, ops - 1) if 0 < number < ops)


SIMPLER = Simpler(candidates, to_json, EVALUATIONS_MAX)
