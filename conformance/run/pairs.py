"""Options of one op, each value of one with each value of every other: few calls instead of all combinations.

Defects live where two options meet. `pairs` chooses calls such that each two values of two options come
together in one of them, an option that is left out being one of its values::

    for args in pairs({"groups": (["mail"], []), "data": (7, None)}, {"event": ("order.made", "order.paid")}):
        await context.op("mol.broadcast", **args)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import Any

from msgspec import UNSET

from conformance.run.bases import changed

Choices = Mapping[str, Sequence[Any]]
#: An option that is not given.
LEFT_OUT = UNSET


def pairs(options: Choices, needed: Choices = MappingProxyType({})) -> list[dict[str, Any]]:
    """Arguments of calls in which each two values of two options come together.

    Args:
        options: The values of each option, whose name may be a dotted path; that it is left out is one more.
        needed: Those of arguments that are always there.
    """
    values = {name: [LEFT_OUT, *given] for name, given in options.items()}
    values |= {name: list(given) for name, given in needed.items()}
    return [_arguments(row) for row in _rows({name: len(given) for name, given in values.items()}, values)]


def _rows(sizes: Mapping[str, int], values: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Rows, greedily: each takes the option and value next that meet most that has not met yet."""
    names = list(sizes)
    left = {
        ((one, i), (other, j))
        for one, other in combinations(names, 2)
        for i in range(sizes[one])
        for j in range(sizes[other])
    } or {((name, i), (name, i)) for name in names for i in range(sizes[name])}
    while left:
        row = dict(min(left))
        for name in names:
            if name not in row:
                row[name] = max(range(sizes[name]), key=lambda i: (_met(row, name, i, names, left), -i))
        left -= {((one, row[one]), (other, row[other])) for one, other in combinations(names, 2)}
        left -= {((name, row[name]), (name, row[name])) for name in names}
        yield {name: values[name][row[name]] for name in names}


def _met(row: Mapping[str, int], name: str, i: int, names: list[str], left: set[Any]) -> int:
    """How many pairs a value makes with those of a row that are not there yet."""
    found = 0
    for other, j in row.items():
        pair = ((name, i), (other, j))
        found += (pair if names.index(name) < names.index(other) else pair[::-1]) in left
    return found


def _arguments(row: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given, each at its place."""
    args: dict[str, Any] = {}
    for name, value in row.items():
        if value is not LEFT_OUT:
            args = changed(args, name.split("."), value)
    return args
