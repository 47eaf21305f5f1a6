"""Values as the Python that makes them: ``drop(role="confirm", nth=1)``.

Faults, plans, matches and effects print so (`repr`): what a failing test shows can be pasted.
The names are those of `fakebrokers.faults` and of a protocol's ``build``.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from keyword import iskeyword
from typing import Any

import msgspec


def function_name(kind: type[msgspec.Struct]) -> str:
    """What the function for an effect is called: as in plans, but as a word that Python takes."""
    name = str(kind.__struct_config__.tag).replace("-", "_")
    return f"{name}_" if name in vars(builtins) or iskeyword(name) else name


def call(name: str, struct: msgspec.Struct) -> str:
    """The call that makes a struct: its fields that are not the default."""
    return written(name, (), given(struct))


def written(name: str, placed: Iterable[str], named: Mapping[str, Any]) -> str:
    """A call.

    Args:
        placed: What is given by position, as source.
        named: What is given by name, as values.
    """
    words = (f"{each}={source(value)}" for each, value in named.items())
    return f"{name}({', '.join([*placed, *words])})"


def given(struct: msgspec.Struct) -> dict[str, Any]:
    """The fields of a struct that are not the default."""
    return dict(_given(struct))


def _given(struct: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        if field.required or value != default:
            yield field.name, value


def source(value: Any) -> str:
    """A value; text in double quotes, a member of an enumeration as its plain value."""
    if isinstance(value, Enum):
        return source(value.value)
    if isinstance(value, str | bytes):
        return _quoted(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{source(name)}: {source(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(source, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(source, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _quoted(value: str | bytes) -> str:
    text = repr(value)
    if text.endswith('"'):
        return text
    start = text.index("'")
    body = text[start + 1 : -1].replace("\\'", "'").replace('"', '\\"')
    return f'{text[:start]}"{body}"'
