"""The keywords that server classes take: their types, and what is wrong with those that were given.

A server class takes those of `FakeServer` besides its own, and says so for type checkers::

    def __init__(self, *, nodes: int = 1, **options: Unpack[ServerOptions]) -> None:

At run time `ServerType` reads the same signatures.
"""

from __future__ import annotations

import inspect
import types
import warnings
from abc import ABCMeta
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Meta

from fakebrokers.errors import PlanError, UsageError, instead_of
from fakebrokers.reading import convert, struct_from
from fakebrokers.renamed import warn_of_old

if TYPE_CHECKING:
    from pathlib import Path

    from fakebrokers.core.receive_path import Recognise
    from fakebrokers.faults.plan import PlanSource

T = TypeVar("T")

#: A TCP or UDP port; 0 is any free one.
Port = Annotated[int, Meta(ge=0, le=0xFFFF)]
Count = Annotated[int, Meta(ge=0)]
#: A time in seconds: no less than none, no more than a century.
Seconds = Annotated[float, Meta(ge=0, le=3.2e9)]
#: What a field of 32 bits can hold.
U32 = Annotated[int, Meta(ge=0, le=0xFFFF_FFFF)]


class ServerOptions(TypedDict, total=False):
    """What every server class takes besides its own keywords and `profile`; see `FakeServer`."""

    host: str
    port: Port
    faults: PlanSource | None
    seed: int | None
    journal_limit: Count
    body_limit: Count
    journal_dir: str | Path | None
    journal_frames: bool
    memory: bool
    peers: Recognise | None
    exact: bool
    wall_clock: Literal["real", "test"]


class ServerType(ABCMeta):
    """The type of server classes: checks the keywords with which one is called, and knows old ones.

    A class says in ``_old_keywords`` which of its keywords had another name and unit: by the old name the new
    one, and how many of the old unit one of the new is.
    """

    def __call__(cls: type[T], *args: Any, **options: Any) -> T:
        given = _renamed(cls, options)
        check_keywords(cls, given)
        made: T = type.__call__(cls, *args, **given)
        return made


def in_seconds(options: Mapping[str, Any], server: Any) -> dict[str, Any]:
    """Keywords for a server class, none of them an old one: for what has old names of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return _renamed(server, options)


def _renamed(server: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in options.items():
        new, per_new = server._old_keywords.get(name, (name, None))
        if per_new is not None:
            warn_of_old(f"{server.__name__}({name}=...)", f"{new}={_converted(value, per_new)!r}", depth=3)
        found[new] = value if per_new is None else _converted(value, per_new)
    return found


def _converted(value: Any, per_new: float) -> Any:
    return value / per_new if isinstance(value, int | float) else value


@cache
def keywords_of(server: type) -> Mapping[str, Any]:
    """The keywords that a server class takes, its own first, with their types; None for one without."""
    found: dict[str, Any] = {}
    for kind in server.__mro__:
        if "__init__" not in vars(kind):
            continue
        parameters = inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
        types_of = _hints(kind)
        for each in parameters:
            if each.name != "self" and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
                found.setdefault(each.name, types_of.get(each.name))
        if not any(each.kind is each.VAR_KEYWORD for each in parameters):
            break
    return found


def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind.__init__, include_extras=True)  # type: ignore[misc]
    except NameError:  # a type that only type checkers import
        return {}


def struct_of(given: Any, kind: type[T], what: str) -> T:
    """A struct of settings: as such, or from a table.

    Raises:
        UsageError: There is no such setting, or its value does not fit; with the right ones.
    """
    if isinstance(given, kind):
        return given
    try:
        made: T = struct_from(given, kind, what)
    except PlanError as error:
        raise UsageError(str(error)) from None
    return made


def check_names(given: Iterable[str], known: Sequence[str], what: str) -> None:
    """Raise `UsageError` for a name that is none of those known; `what` says of what it is one."""
    for name in given:
        if name not in known:
            raise UsageError(f"no {what} {name!r}{instead_of(name, known)}")


def check_keywords(server: type, given: Mapping[str, Any]) -> None:
    """Check the keywords with which a server class is called: their names, and values of simple types.

    Raises:
        UsageError: It has no such keyword; or the value is of another type, or out of range.
    """
    known, simple = keywords_of(server), _simple_of(server)
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"{server.__name__} has no {name!r}{instead_of(name, known)}")
        if name in simple:
            try:
                convert(_number(value), known[name], name)
            except PlanError as error:
                raise UsageError(f"{server.__name__}({name}=...): {error.problem}") from None


@cache
def _simple_of(server: type) -> frozenset[str]:
    """The keywords of a server class that have a simple type."""
    return frozenset(name for name, kind in keywords_of(server).items() if _is_simple(kind))


def _is_simple(kind: Any) -> bool:
    """Whether a type says all about its values: numbers, text, enumerations, or one of several of these."""
    if get_origin(kind) in (Union, types.UnionType):
        return all(map(_is_simple, get_args(kind)))
    if get_origin(kind) is tuple:
        return all(map(_is_simple, get_args(kind)))
    if get_origin(kind) is Annotated:
        return _is_simple(get_args(kind)[0])
    return (
        kind in (bool, int, float, str, types.NoneType)
        or get_origin(kind) is Literal
        or (isinstance(kind, type) and issubclass(kind, Enum))
    )


def _number(value: Any) -> Any:
    """A number of another library (NumPy) as one of Python's."""
    if isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "__index__"):
        return value.__index__()
    return float(value) if hasattr(value, "__float__") else value
