"""What the functions that build faults have to take, read from the classes that say it too."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import reduce
from importlib import import_module
from operator import or_
from types import FunctionType, ModuleType
from typing import Any, Literal, Union, get_args, get_origin

from fakebrokers.faults import build
from fakebrokers.faults.effect import Effect
from fakebrokers.faults.registry import COMMON
from fakebrokers.faults.source import function_name
from fakebrokers.protocol import Protocol, protocols

SHIPPED = [each for each in protocols() if each.server.startswith("fakebrokers.")]


def build_module(protocol: Protocol) -> str:
    """Where the functions for the effects are that only this protocol has."""
    return f"{protocol.server.partition(':')[0].rpartition('.')[0]}.build"


def functions_in(module: ModuleType) -> dict[str, FunctionType]:
    """What a module builds faults with, by name."""
    found = {name: each for name, each in vars(module).items() if isinstance(each, FunctionType)}
    return {name: each for name, each in found.items() if not name.startswith("__") and name != "builder"}


def builders() -> Iterator[tuple[type[Effect], FunctionType]]:
    """Each effect, and its function."""
    yield from ((kind, getattr(build, function_name(kind))) for kind in COMMON)
    for protocol in SHIPPED:
        module = import_module(build_module(protocol))
        yield from ((kind, getattr(module, function_name(kind))) for kind in protocol.own_effects)


def widened(kind: Any) -> Any:
    """A type as a caller may give it: a list for a tuple, a word for a member of an enumeration."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return reduce(or_, map(widened, inner))
    if origin is tuple:
        of = inner[:1] if inner[1:] == (...,) else inner
        return Sequence[reduce(or_, map(widened, of))]  # type: ignore[misc]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind | Literal[tuple(each.value for each in kind)]
    return kind
