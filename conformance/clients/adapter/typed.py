"""From what came as JSON to the types of the ops, with errors that name the member and both sides."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import inspect

_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_SHOWN_MAX = 120


class Misfit(ValueError):
    """A value is not what it should be: which member, what was expected, what came."""


def typed(value: Any, kind: Any, place: str) -> Any:
    """The value as that type.

    Args:
        place: What to call the value in an error.

    Raises:
        Misfit: It does not fit.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).rpartition(" - at `$")
        text, path = (text, path.removesuffix("`")) if text else (str(error), "")
        steps = [name or index for name, index in _STEP.findall(path)]
        wanted = _words_at(inspect.type_info(kind), steps)
        if text.startswith("Invalid enum value") and wanted:
            text = f"expected one of {', '.join(wanted)}"
        came = "" if ", got '" in text else f", got {short(_inside(value, steps))}"
        raise Misfit(f"{place}{path}: {text[:1].lower()}{text[1:]}{came}") from None


def short(value: object) -> str:
    """The value on one line, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."


def _inside(value: Any, steps: Sequence[str]) -> Any:
    """What is at that place, or the smallest thing around it that can be found."""
    for step in steps:
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, Sequence) and step.isdigit():
            value = value[int(step)]
        else:
            break
    return value


def _words_at(info: Any, steps: Sequence[str]) -> list[str]:
    """The words that are allowed at that place, if only some are."""
    kinds = info.types if isinstance(info, inspect.UnionType) else [info]
    words: list[str] = []
    for kind in kinds:
        if isinstance(kind, inspect.Metadata):
            words += _words_at(kind.type, steps)
        elif not steps:
            words += _words(kind)
        elif isinstance(kind, inspect.StructType):
            fields = [field.type for field in kind.fields if field.encode_name == steps[0]]
            words += [word for field in fields for word in _words_at(field, steps[1:])]
        elif isinstance(kind, inspect.ListType | inspect.DictType):
            inner = kind.item_type if isinstance(kind, inspect.ListType) else kind.value_type
            words += _words_at(inner, steps[1:])
    return words


def _words(kind: Any) -> list[str]:
    if isinstance(kind, inspect.LiteralType):
        return [str(value) for value in kind.values]
    return [str(member.value) for member in kind.cls] if isinstance(kind, inspect.EnumType) else []
