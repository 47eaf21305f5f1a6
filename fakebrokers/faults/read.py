"""Plain values into structs, with errors that say where, what came, and what was expected."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from fakebrokers.errors import PlanError

_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    types.NoneType: "nothing",
}


def struct_from(value: Any, kind: Any, path: str) -> Any:
    """A struct from a table; each field is read for itself, so that the path is exact."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    if not isinstance(value, Mapping):
        raise PlanError(path, f"expected a table, got {value!r}")
    for name in value:
        if name not in fields:
            raise PlanError(f"{path}.{name}", f"expected {one_of(list(fields) or ['nothing'], name)}")
    for name, field in fields.items():
        if field.required and name not in value:
            raise PlanError(f"{path}.{name}", f"expected {_describe(field.type)}, got nothing")
    return kind(**{name: convert(each, fields[name].type, f"{path}.{name}") for name, each in value.items()})


def convert(value: Any, kind: Any, path: str) -> Any:
    """A value of that type."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        words = _choices(kind)
        expected = one_of(words, value) if words else f"{_describe(kind)}, got {value!r}"
        raise PlanError(path, f"expected {expected}") from None


def field_value(value: Any, kind: Any) -> Any:
    """A frame's field from a plain value: lists for tuples, numbers for enums, text for bytes (UTF-8).

    Raises:
        msgspec.ValidationError: It does not fit.
    """
    try:
        return msgspec.convert(value, kind, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        try:
            return msgspec.convert(_encoded(value), kind, builtin_types=(bytes,))
        except msgspec.ValidationError:
            raise error from None


def _encoded(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="surrogateescape")
    return [_encoded(each) for each in value] if isinstance(value, list | tuple) else value


def one_of(names: Sequence[str], got: Any) -> str:
    """What was expected instead of `got`, with the closest."""
    close = get_close_matches(str(got).lower(), names, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"one of {', '.join(names)}; got {got!r}{hint}"


def _describe(kind: Any) -> str:
    words = _choices(kind)
    if words:
        return f"one of {', '.join(words)}"
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(each) for each in get_args(kind) if each is not types.NoneType)
    if origin is tuple:
        return f"a list ({_describe(get_args(kind)[0])})"
    return "a table" if origin is not None else _WORDS.get(kind, str(kind))


def _choices(kind: Any) -> list[str]:
    """The words that an enum, a `Literal` or an optional one of these allows."""
    if get_origin(kind) is Literal:
        return [str(each) for each in get_args(kind)]
    if get_origin(kind) in (Union, types.UnionType):
        return [word for each in get_args(kind) for word in _choices(each)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(each.value) for each in kind]
    return []
