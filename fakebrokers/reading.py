"""Plain values into structs, with errors that say where, what came, and what was expected."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from fakebrokers.errors import PlanError

_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    types.NoneType: "nothing",
}


#: Levels of tables and lists in a plan, above which it is refused: whoever writes it down goes as deep.
_DEEPEST = 100
#: The largest whole number, either way; Python writes no number of some thousand digits.
_LARGEST = 1 << 256
#: Characters of a value that an error shows.
_SHOWN = 200


def check_plain(value: Any, path: str) -> None:
    """Check that a plan's values are of a size that everything can handle that will read them.

    Raises:
        PlanError: Nested too deep (or in a circle), or a whole number of more than 256 bits.
    """
    rest: list[tuple[Any, str, int]] = [(value, path, 0)]
    while rest:
        each, where, depth = rest.pop()
        if isinstance(each, int) and not -_LARGEST <= each <= _LARGEST:
            raise PlanError(where, "expected a whole number of at most 256 bits, got a larger one")
        if isinstance(each, Mapping):
            for name in each:
                if not isinstance(name, str):
                    raise PlanError(where, f"expected names that are text, got {shown(name)}")
            rest += [
                (part, f"{where}.{name}" if where else str(name), depth + 1) for name, part in each.items()
            ]
        elif isinstance(each, list | tuple):
            rest += [(part, f"{where}[{number}]", depth + 1) for number, part in enumerate(each)]
        if depth > _DEEPEST:
            raise PlanError(
                where[:_SHOWN], f"expected at most {_DEEPEST} levels of tables and lists, got more"
            )


def shown(value: Any) -> str:
    """A value as an error shows it, whatever its size."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # a circle; a number with more digits than Python turns into text
        return f"a value of type {type(value).__name__} that is too large to show"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


@cache
def _fields(kind: Any) -> Mapping[str, msgspec.structs.FieldInfo]:
    """The fields of a struct; msgspec reads its annotations each time."""
    return {field.name: field for field in msgspec.structs.fields(kind)}


def struct_from(value: Any, kind: Any, path: str) -> Any:
    """A struct from a table; each field is read for itself, so that the path is exact."""
    fields = _fields(kind)
    if not isinstance(value, Mapping):
        raise PlanError(path, f"expected a table, got {shown(value)}")
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
    except (msgspec.ValidationError, OverflowError):
        words = _choices(kind)
        expected = one_of(words, value) if words else f"{_describe(kind)}, got {shown(value)}"
        raise PlanError(path, f"expected {expected}") from None


def field_value(value: Any, kind: Any) -> Any:
    """A frame's field from a plain value: lists for tuples, numbers for enums, for bytes text (UTF-8) or
    ``{"hex": "00ff"}``.

    Raises:
        msgspec.ValidationError: It does not fit.
    """
    try:
        return msgspec.convert(value, kind, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        try:
            return msgspec.convert(_encoded(value), kind, builtin_types=(bytes,))
        except (msgspec.ValidationError, ValueError):
            raise error from None


def plain_value(value: Any) -> Any:
    """The plain value of which `field_value` makes this field of a frame."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"hex": value.hex()}
    if isinstance(value, Mapping):
        return {name: plain_value(each) for name, each in value.items()}
    return [plain_value(each) for each in value] if isinstance(value, list | tuple) else value


def _encoded(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="surrogateescape")
    if isinstance(value, Mapping) and value.keys() == {"hex"}:
        return bytes.fromhex(value["hex"])
    return [_encoded(each) for each in value] if isinstance(value, list | tuple) else value


def one_of(names: Sequence[str], got: Any) -> str:
    """What was expected instead of `got`, with the closest."""
    close = get_close_matches(shown(got).strip("'").lower(), names, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"one of {', '.join(names)}; got {shown(got)}{hint}"


def _describe(kind: Any) -> str:
    words = _choices(kind)
    if words:
        return f"one of {', '.join(words)}"
    origin = get_origin(kind)
    if origin is Annotated:
        return f"{_describe(get_args(kind)[0])}{''.join(map(_range, kind.__metadata__))}"
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(each) for each in get_args(kind) if each is not types.NoneType)
    if origin is tuple:
        return f"a list ({_describe(get_args(kind)[0])})"
    return "a table" if origin is not None else _WORDS.get(kind, str(kind))


def _range(meta: Any) -> str:
    """The range that a type has besides, of whole numbers and of others."""
    if not isinstance(meta, msgspec.Meta) or meta.ge is None:
        return ""
    return f" from {meta.ge}" + ("" if meta.le is None else f" to {meta.le}")


def _choices(kind: Any) -> list[str]:
    """The words that an enum, a `Literal` or an optional one of these allows."""
    if get_origin(kind) is Literal:
        return [str(each) for each in get_args(kind)]
    if get_origin(kind) in (Union, types.UnionType):
        return [word for each in get_args(kind) for word in _choices(each)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(each.value) for each in kind]
    return []
